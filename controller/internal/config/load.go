// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Load reads, checks and returns the file at path. The notes are sentences
// about accepted keys that no longer do anything, for the log.
func Load(path string) (Config, []string, error) {
	return load(path, Parse)
}

func load[File any](path string, parse func([]byte) (File, []string, error)) (c File, notes []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return c, nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	if c, notes, err = parse(data); err != nil {
		return c, nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return c, notes, nil
}

// Parse is Load for the content of a file.
func Parse(data []byte) (Config, []string, error) {
	c := Default()
	if err := decode(data, &c); err != nil {
		return Config{}, nil, err
	}
	c.refill()
	if problems := c.validate(); len(problems) > 0 {
		return Config{}, nil, problems.ToAggregate()
	}
	return c, c.notes(), nil
}

// decode reads a file over the defaults.
func decode[File any](data []byte, over *File) error {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return fmt.Errorf("not a YAML document: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(asJSON, over)
	if err != nil {
		return wrongType(err)
	}
	return explained(strict, keys(reflect.TypeFor[File](), ""))
}

// refill gives lists and maps back what a null has taken from them. To everything else
// null does nothing.
func (c *Config) refill() {
	if c.AppWrapper.Kueue.ServiceAccounts == nil {
		c.AppWrapper.Kueue.ServiceAccounts = Default().AppWrapper.Kueue.ServiceAccounts
	}
	if c.AppWrapper.Autopilot.ResourceTaints == nil {
		c.AppWrapper.Autopilot.ResourceTaints = Default().AppWrapper.Autopilot.ResourceTaints
	}
}

var unknownKey = regexp.MustCompile(`^unknown field "(.*)"$`)

// explained adds to each unknown key the one that was probably meant.
func explained(strict []error, known []string) error {
	for i, err := range strict {
		if key := unknownKey.FindStringSubmatch(err.Error()); key != nil {
			strict[i] = fmt.Errorf("unknown key %s: did you mean %s?", key[1], nearest(key[1], known))
		}
	}
	return errors.Join(strict...)
}

// wrongType rewrites the decoder's message, which speaks of Go, for somebody
// who edits YAML.
func wrongType(err error) error {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	if mismatch.Type == reflect.TypeFor[Duration]() {
		return fmt.Errorf("%s: %s is not a duration; write 90s, 5m or 1h30m, or a whole number of nanoseconds",
			mismatch.Field, mismatch.Value)
	}
	field := mismatch.Field
	if field == "" {
		field = "the file"
	}
	return fmt.Errorf("%s: a %s does not belong here, a %s does", field, mismatch.Value, yamlName(mismatch.Type))
}

func yamlName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "section"
	case reflect.Slice:
		return "list"
	case reflect.Bool:
		return "boolean (true or false)"
	case reflect.String:
		return "string"
	default:
		return "number"
	}
}

// legacy is a key that does nothing, and why.
type legacy struct {
	key, why string
	value    json.RawMessage
}

func (c *Config) notes() []string {
	notes := withoutEffect(append([]legacy{
		{"appwrapper.enableKueueIntegrations", "Kueue itself decides which kinds it queues", c.AppWrapper.EnableKueueIntegrations},
		{"appwrapper.kueueJobReconciller", "Kueue ships its own AppWrapper integration", c.AppWrapper.KueueJobReconciller},
	}, c.ControllerManager.legacy()...))
	return append(notes, c.AppWrapper.slackNotes()...)
}

func (m *ControllerManager) legacy() []legacy {
	return []legacy{{"controllerManager.metrics.secureServing", "metrics are always served over TLS", m.Metrics.SecureServing}}
}

// withoutEffect says which keys of the file do nothing.
func withoutEffect(all []legacy) []string {
	var notes []string
	for _, l := range all {
		if len(l.value) > 0 {
			notes = append(notes, l.key+" is accepted for the sake of existing files and has no effect: "+l.why)
		}
	}
	return notes
}
