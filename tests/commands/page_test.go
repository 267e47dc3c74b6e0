package commands

import (
	"reflect"
	"testing"
)

func TestCommandsAreTheLinesOfIndentedAndShellBlocks(t *testing.T) {
	const page = "Words with `code`.\n\n" +
		"    a$ oneway probe b     # a comment\n" +
		"    build/x 'a # b' \\\n      --more\n\n" +
		"```yaml\nkey: value\n```\n\n" +
		"1. In a list:\n\n" +
		"   ```sh\n   tee file <<'EOF'\n   text\n   EOF\n   date\n   ```\n\n" +
		"```\noutput\n```\n"
	want := []Command{
		{3, "oneway probe b"},
		{4, "build/x 'a # b' \\\n  --more"},
		{14, "tee file <<'EOF'\ntext\nEOF"},
		{17, "date"},
	}
	if got := Extract([]byte(page)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
