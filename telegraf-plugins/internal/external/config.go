package external

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Load decodes the table of an input in a file, strictly: the shim would ignore unknown options, and all tables but one. An
// empty file name leaves the defaults. ${NAME} is an environment variable, as in the shim and in Telegraf.
func Load(name string, into any, file string) error {
	if file == "" {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the configuration cannot be read: %w", err)
	}
	var tables struct {
		Inputs map[string][]toml.Primitive `toml:"inputs"`
	}
	text := os.Expand(string(content), func(key string) string {
		return strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(os.Getenv(key))
	})
	all, err := toml.Decode(text, &tables)
	if err != nil {
		return fmt.Errorf("%s: %s", file, strings.TrimPrefix(syntax(err), "toml: "))
	}
	own := tables.Inputs[name]
	switch {
	case len(own) == 0:
		return fmt.Errorf("%s: has no [[inputs.%s]]", file, name)
	case len(own) > 1:
		return fmt.Errorf("%s: has %d [[inputs.%s]]; one process runs one of them", file, len(own), name)
	}
	if err := all.PrimitiveDecode(own[0], into); err != nil {
		return fmt.Errorf("%s: %s", file, strings.TrimPrefix(syntax(err), "toml: "))
	}
	var keys []string
	for _, key := range all.Undecoded() {
		// The plugin itself decodes what is below one of its options.
		if len(key) <= len([]string{"inputs", "name", "option"}) {
			keys = append(keys, key.String())
		}
	}
	if slices.Sort(keys); len(keys) > 0 {
		return fmt.Errorf("%s: %s is no option of inputs.%s; -sample_config prints all", file, keys[0], name)
	}
	return nil
}

// syntax is the error of a TOML file in one line, with its line.
func syntax(err error) string {
	if wrong, ok := errors.AsType[toml.ParseError](err); ok {
		return strings.ReplaceAll(wrong.Error(), "\n", " ")
	}
	return err.Error()
}

// located adds the place to errors of options, each in a line of its own.
func located(name, file string, err error) error {
	if file == "" {
		file = "default configuration"
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		lines = append(lines, fmt.Sprintf("%s: inputs.%s: %s", file, name, strings.TrimSpace(line)))
	}
	return errors.New(strings.Join(lines, "\n"))
}
