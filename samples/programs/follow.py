# SPDX-License-Identifier: Apache-2.0
"""Prints its conclusion about each AppWrapper of a namespace whenever it changes. See docs/programs.md.

The arguments: what kubectl config view --minify --flatten --raw --output json printed, a namespace, and a file to
remember conclusions in.
"""
import base64, http.client, json, os, pathlib, ssl, sys, tempfile, time, urllib.request

PHASES = {"": "Waits", "Suspended": "Waits", "Resuming": "Starts", "Running": "Starts", "Resetting": "TriesAgain"}
COUNTS = ("FailureRetries", "StartupRetries", "Migrations", "Preemptions")


def conclude(aw):
    """A conclusion that has Ended is never taken back."""
    meta, status = aw["metadata"], aw.get("status", {})
    reasons = {c["type"]: c["reason"] for c in status.get("conditions", []) if c["status"] == "True"}
    cause = ([""] + [a["cause"] for a in status.get("lastAttempts", [])])[-1]
    phase, finished = status.get("phase", ""), reasons.get("Finished")
    rows = [  # the first that holds
        (finished, finished, cause if finished == "Failed" else "", True),
        ("deletionTimestamp" in meta, "BeingDeleted", "", False),
        ("Deactivated" in reasons, "Deactivated", reasons.get("Deactivated"), False),
        ("Requeued" in reasons, "WaitsAgain", reasons.get("Requeued"), False),
        (phase == "Running" and "PodsReady" in reasons, "Runs", "", False),
        (True, PHASES.get(phase, "Unknown"), cause if phase == "Resetting" else "", False),
    ]
    said = next(dict(zip(("Is", "Because", "Ended"), row[1:])) for row in rows if row[0])
    counts = {c: status.get(c[0].lower() + c[1:], 0) for c in COUNTS}
    return {"UID": meta["uid"], "Name": meta["name"], "AsOf": meta["resourceVersion"], **said, **counts}


class Follower:
    def __init__(self, config, namespace, file):
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"] + f"/apis/workload.codeflare.dev/v1beta2/namespaces/{namespace}/appwrappers"
        self.headers = {"Authorization": "Bearer " + user["token"]} if "token" in user else {}
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.trust = ssl.create_default_context(cadata=ca)
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as pair:
                for part in "client-certificate-data", "client-key-data":
                    pair.write(base64.b64decode(user[part]) + b"\n")
                pair.flush()
                self.trust.load_cert_chain(pair.name)
        self.file, self.known = file, {}  # by UID. The file keeps it for the time after a restart
        if os.path.exists(file):
            self.known = json.loads(pathlib.Path(file).read_text())

    def see(self, now, gone):
        if gone and not now["Ended"]:
            now.update(Is="Deleted", Because="", Ended=True)
        was = self.known.get(now["UID"], {"Ended": False})
        if not was["Ended"] and now != {**was, "AsOf": now["AsOf"]}:
            print(json.dumps(now), flush=True)  # a program acts here; after a crash it may do so twice
            self.known[now["UID"]] = now
        if gone:
            self.known.pop(now["UID"], None)
        pathlib.Path(self.file + ".new").write_text(json.dumps(self.known))
        os.replace(self.file + ".new", self.file)

    def follow(self):
        """Lists, and watches until the watch ends or fails. Then it has to list again."""
        with self.get("") as response:
            listed = json.load(response)
        version = listed["metadata"]["resourceVersion"]
        for aw in listed["items"]:
            self.see(conclude(aw), False)
        there = {aw["metadata"]["uid"] for aw in listed["items"]}
        for uid in set(self.known) - there:  # it went while nobody watched
            self.see({**self.known[uid], "AsOf": version}, True)
        with self.get("?watch=1&timeoutSeconds=300&resourceVersion=" + version) as response:
            for event in map(json.loads, response):
                if event["type"] == "ERROR":
                    raise OSError("the version is too old")
                self.see(conclude(event["object"]), event["type"] == "DELETED")

    def get(self, query):
        request = urllib.request.Request(self.url + query, headers=self.headers)
        return urllib.request.urlopen(request, timeout=330, context=self.trust)


if __name__ == "__main__":
    follower = Follower(json.loads(pathlib.Path(sys.argv[1]).read_text()), *sys.argv[2:])
    while True:
        try:
            follower.follow()
        except (OSError, ValueError, http.client.HTTPException) as wrong:
            print("listing again, because", wrong, file=sys.stderr)
            time.sleep(1)
