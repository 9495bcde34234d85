# SPDX-License-Identifier: Apache-2.0
"""Train a small classifier of handwritten digits on all pods of a job together.

torchrun starts one process in each pod. Every process learns from its own share of
the pictures; DistributedDataParallel averages the gradients over all of them, so the
copies of the model stay equal. Standard output is one JSON object a line. The program
fails unless the processes really talked to each other and the model really learned.
"""

import gc
import json
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

DATA = pathlib.Path(__file__).parent / "data" / "digits.csv"
EPOCHS = 20
BATCH = 64
# Every fifth picture is kept out of training, to measure on what was never seen.
TEST_EVERY = 5


def say(event, **facts):
    print(json.dumps({"event": event, "rank": dist.get_rank(), **facts}), flush=True)


def load():
    """Returns pictures (64 pixels from 0 to 1) and the digits that they show."""
    with DATA.open() as file:
        rows = torch.tensor([[int(cell) for cell in line.split(",")] for line in file])
    return rows[:, :-1].float() / 16, rows[:, -1]


def total(*numbers):
    """Sums numbers over all processes."""
    sums = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


def check_all_reduce():
    """Each process gives its rank + 1; the sum of whole numbers has to be exact."""
    world = dist.get_world_size()
    expected = world * (world + 1) / 2
    (got,) = total(dist.get_rank() + 1)
    say("allreduce", sum=got, expected=expected)
    if got != expected:
        sys.exit(f"the all-reduce over {world} processes gave {got}, not {expected}")


@torch.no_grad()
def evaluate(model, pictures, digits):
    """Returns mean loss and accuracy over the pictures of all processes."""
    scores = model(pictures)
    loss = torch.nn.functional.cross_entropy(scores, digits, reduction="sum")
    right = (scores.argmax(dim=1) == digits).sum()
    loss, right, count = total(loss.item(), right.item(), len(digits))
    return loss / count, right / count


def train(model, pictures, digits):
    """Learns once from each picture of this process, in a new order."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def epoch():
        # Equal numbers of steps everywhere: a process with one more would wait forever.
        for batch in torch.randperm(len(digits)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(pictures[batch]), digits[batch]).backward()
            optimizer.step()

    return epoch


def learn_together():
    """Trains one model on all processes; returns its first and its last loss."""
    rank, world = dist.get_rank(), dist.get_world_size()
    say("start", worldSize=world, torch=torch.__version__)
    check_all_reduce()

    pictures, digits = load()
    unseen = torch.arange(len(digits)) % TEST_EVERY == 0
    share = len(digits[~unseen]) // world
    mine = slice(rank * share, (rank + 1) * share)
    seen = pictures[~unseen][mine], digits[~unseen][mine]

    torch.manual_seed(rank)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    )
    learn = train(model, *seen)
    losses = []
    for epoch in range(EPOCHS + 1):
        if epoch > 0:
            learn()
        losses.append(evaluate(model.module, *seen)[0])
        if rank == 0:
            say("loss", epoch=epoch, loss=round(losses[-1], 4))

    _, accuracy = evaluate(model.module, pictures[unseen], digits[unseen])
    first, last = losses[0], losses[-1]
    say("done", firstLoss=round(first, 4), lastLoss=round(last, 4), accuracy=round(accuracy, 4))
    return first, last


def main():
    dist.init_process_group("gloo")
    first, last = learn_together()
    # The model has to go before the group that it uses. If it is the last to let go of
    # the group, torch 1.13 joins gloo's thread while it holds Python's lock; a thread
    # that has a tensor left to free waits for that lock, and both wait forever.
    gc.collect()
    dist.destroy_process_group()
    if not last < first / 2:
        sys.exit(f"the loss only went from {first:.4f} to {last:.4f}, less than by half")


if __name__ == "__main__":
    main()
