package runbook

import (
	"strings"
	"testing"
)

func TestPageIsRendered(t *testing.T) {
	const text = "# A `b`\n\n    curl -s 'http://a/<x>' | jq .\n    second\n\n- one **two**\n  three\n- [four](f.html)\n\nSee `OnewayLossHigh`, `<i>`:\n- five\n"
	const want = "<h1>A <code>b</code></h1>\n<pre><code>curl -s 'http://a/&lt;x&gt;' | jq .\nsecond\n</code></pre>\n" +
		"<ul>\n<li>one <strong>two</strong>\nthree</li>\n<li><a href=\"f.html\">four</a></li>\n</ul>\n" +
		"<p>See <a href=\"OnewayLossHigh\"><code>OnewayLossHigh</code></a>, <code>&lt;i&gt;</code>:</p>\n<ul>\n<li>five</li>\n</ul>\n"
	if got := string(HTML(text)); got != want {
		t.Errorf("rendered\n%s\nwant\n%s", got, want)
	}
}

func TestPageRunsNoCode(t *testing.T) {
	for _, text := range []string{"<script>alert(1)</script>", "a <b onclick=alert(1)>b</b>", "[a](javascript:alert(1))", "<img src=x onerror=alert(1)>"} {
		got := strings.ToLower(string(HTML(text)))
		for _, bad := range []string{"<script", "onclick", "onerror", "javascript:"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s became %s", text, got)
			}
		}
	}
}

// Each page begins with its name, a paragraph and the commands to type.
func TestEachPageBeginsWithACommand(t *testing.T) {
	if len(Names()) < 40 {
		t.Fatalf("%d pages: fewer than there are alerts", len(Names()))
	}
	for _, name := range Names() {
		blocks := strings.SplitN(Text(name), "\n\n", 5)
		if len(blocks) < 4 || blocks[0] != "# "+name || !strings.HasPrefix(blocks[2], "    ") || !strings.HasPrefix(blocks[3], "- ") {
			t.Errorf("%s: it begins with %q; want its name, a sentence, commands, and a list of what their output means", name, blocks[:min(4, len(blocks))])
		}
		if strings.Count(Text(name), "`")%2 != 0 {
			t.Errorf("%s: a ` is not closed", name)
		}
	}
	if got := Text("../runbook") + Text("") + Text("OnewayUnknown"); got != "" {
		t.Errorf("pages of unknown names: %q", got)
	}
}
