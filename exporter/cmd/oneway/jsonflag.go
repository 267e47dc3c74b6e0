package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// jsonFlag is the flag --json of a command. Its value summary leaves out the rows.
type jsonFlag struct{ full, summary bool }

// summaryFlag is what the parser of arguments sees of --json=summary: flags without a value cannot have one.
const summaryFlag = "json-summary"

// summaryArgument is what the user writes.
const summaryArgument = "--json=summary"

func (f *jsonFlag) register(cmd *kingpin.CmdClause, help string) {
	cmd.Flag("json", help).BoolVar(&f.full)
	cmd.Flag(summaryFlag, "As --json=summary.").Hidden().BoolVar(&f.summary)
}

// wanted reports whether the command prints a document.
func (f *jsonFlag) wanted() bool { return f.full || f.summary }

// withSummaryFlag returns arguments that the parser accepts.
func withSummaryFlag(args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		if a == "--" {
			break
		}
		if a == summaryArgument {
			args[i] = "--" + summaryFlag
		}
	}
	return args
}

// printed prints a document, and returns the error of the measurement, or of printing.
func (f *jsonFlag) printed(out io.Writer, d any, err error) error {
	if !f.summary {
		return printed(out, d, err)
	}
	all, failed := json.Marshal(d)
	if failed == nil {
		all, failed = withoutRows(all)
	}
	if failed != nil {
		return fmt.Errorf("print the document: %w", failed)
	}
	return printed(out, json.RawMessage(all), err)
}

// withoutRows is a value of JSON whose fields rows, and those that end in _rows, are empty lists; the order of fields is kept.
func withoutRows(value json.RawMessage) (json.RawMessage, error) {
	if len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return value, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	opening, err := decoder.Token()
	short := new(bytes.Buffer)
	fmt.Fprint(short, opening)
	for first := true; err == nil && decoder.More(); first = false {
		if !first {
			short.WriteByte(',')
		}
		err = appendWithoutRows(short, decoder, value[0] == '{')
	}
	if err != nil {
		return nil, err
	}
	closing, err := decoder.Token()
	fmt.Fprint(short, closing)
	return short.Bytes(), err
}

// appendWithoutRows appends the next element of a list, or the next field of an object.
func appendWithoutRows(short *bytes.Buffer, decoder *json.Decoder, field bool) error {
	var name string
	if field {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		name = fmt.Sprint(key)
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		short.Write(append(quoted, ':'))
	}
	var one json.RawMessage
	if err := decoder.Decode(&one); err != nil {
		return err
	}
	if (name == "rows" || strings.HasSuffix(name, "_rows")) && one[0] == '[' {
		one = json.RawMessage("[]")
	}
	one, err := withoutRows(one)
	short.Write(one)
	return err
}
