package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes is some hundred thousand paths.
const maxFileBytes = 64 << 20

// Load reads and checks a file. What is wrong with its content is an error of
// type Problems.
func Load(name string) (*Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("config: %s: larger than %d MiB: not a configuration", name, maxFileBytes>>20)
	}
	return Parse(name, content)
}

// Parse reads and checks the content of a file; name is for messages, and its
// directory for the files that the content names.
func Parse(name string, content []byte) (*Config, error) {
	root, problem := parse(name, content)
	if problem != nil {
		return nil, Problems{problem}
	}
	d := &decoder{file: name, dir: filepath.Dir(name)}
	c := &Config{File: name, root: root, Clock: Clock{Source: ClockChrony, Interval: time.Second}}
	d.value(root, "", reflect.ValueOf(c).Elem())
	// What could not be read has the zero value: checks of it would mislead.
	if len(d.problems) == 0 {
		d.check(c, root)
	}
	if len(d.problems) > 0 {
		return nil, d.problems.Sort()
	}
	return c, nil
}

// parse returns the one document of a file.
func parse(name string, content []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, further yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF) || (err == nil && isEmpty(&document)):
		return nil, &Problem{File: name, Text: "is empty; it needs paths to measure, a reflector or a responder"}
	case err != nil:
		return nil, syntaxProblem(name, err)
	}
	switch err := decoder.Decode(&further); {
	case err == nil:
		return nil, problemAt(name, &further, "", "a second document begins here; a configuration is one")
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(name, err)
	}
	return document.Content[0], nil
}

func isEmpty(document *yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"
}

// yamlLine is how yaml.v3 begins its messages.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

func syntaxProblem(name string, err error) *Problem {
	message := err.Error()
	found := yamlLine.FindStringSubmatch(message)
	// 0 if there is none. It may be a line or two early: the parser tells where
	// what it was reading began.
	line, _ := strconv.Atoi(found[1])
	if line == 0 {
		return &Problem{File: name, Text: "this is not YAML: " + message[len(found[0]):]}
	}
	return &Problem{File: name, Line: line, Text: "at or after this line it is not YAML: " + message[len(found[0]):]}
}
