package point

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
)

// decode reads a line back.
func decode(t testing.TB, line []byte) (p Point) {
	t.Helper()
	d := lineprotocol.NewDecoderWithBytes(line)
	if !d.Next() {
		t.Fatalf("no line in %q", line)
	}
	name, err := d.Measurement()
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	p.Measurement = string(name)
	for {
		key, value, err := d.NextTag()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if key == nil {
			break
		}
		p.Tags = append(p.Tags, Tag{string(key), string(value)})
	}
	for {
		key, value, err := d.NextField()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if key == nil {
			break
		}
		own, _ := lineprotocol.NewValue(value.Interface()) // value has the decoder's memory
		p.Fields = append(p.Fields, Field{string(key), own})
	}
	at, err := d.TimeBytes()
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	for _, c := range at {
		p.At = p.At*10 + instant.Time(c-'0')
	}
	if d.Next() {
		t.Fatalf("%q has a second line", line)
	}
	return p
}

// same values compare by type and content.
var sameValues = cmp.Comparer(func(a, b lineprotocol.Value) bool { return a.Equal(b) })

func somePoint() *Point {
	return &Point{
		Measurement: "oneway_delay", At: 1_790_000_000_123_456_789,
		Tags: []Tag{{"direction", "forward"}, {"path", "a to b"}, {"probe", "stamp"}},
		Fields: Float(Int(Float([]Field{{"ok", lineprotocol.BoolValue(true)}, {"run", Text("r 1")}}, "delay_min_seconds", 0.1), "delay_seconds_count", math.MaxInt64),
			"delay_seconds_sum", 1.0/3),
	}
}

func TestLineIsReadBackExactly(t *testing.T) {
	var e Encoder
	line, err := e.Append(nil, somePoint())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*somePoint(), decode(t, line), sameValues); diff != "" {
		t.Errorf("%s (-want +got):\n%s", line, diff)
	}
}

func TestLinesAreAppended(t *testing.T) {
	var e Encoder
	one, _ := e.Append(nil, somePoint())
	both, _ := e.Append([]byte("# before\n"), somePoint())
	both, err := e.Append(both, somePoint())
	if want := "# before\n" + string(one) + string(one); err != nil || string(both) != want {
		t.Errorf("%q, %v; want %q", both, err, want)
	}
}

func TestPointThatCannotBeEncodedAppendsNothing(t *testing.T) {
	for name, change := range map[string]func(*Point){
		"no field":       func(p *Point) { p.Fields = nil },
		"no time":        func(p *Point) { p.At = 0 },
		"no measurement": func(p *Point) { p.Measurement = "" },
		"unsorted tags":  func(p *Point) { p.Tags[0], p.Tags[1] = p.Tags[1], p.Tags[0] },
		"a tag twice":    func(p *Point) { p.Tags[1] = p.Tags[0] },
		"wrong key":      func(p *Point) { p.Fields[0].Key = "a\nb" },
	} {
		var e Encoder
		p := somePoint()
		change(p)
		if line, err := e.Append([]byte("x\n"), p); err == nil || string(line) != "x\n" {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		if line, err := e.Append([]byte("x\n"), somePoint()); err != nil || !strings.HasPrefix(string(line), "x\noneway_delay,") {
			t.Errorf("after %s: %q, %v", name, line, err)
		}
	}
}

func TestValuesThatAreNotFiniteHaveNoField(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if all := Float(nil, "x", v); len(all) != 0 {
			t.Errorf("%v: %v", v, all)
		}
	}
	for v, want := range map[float64]int64{math.Inf(1): math.MaxInt64, 1e19: math.MaxInt64, 3: 3, -1: 0} {
		if got := CountOf(v); got != want {
			t.Errorf("count %v is %d, want %d", v, got, want)
		}
	}
	if CountOf(math.NaN()) != 0 {
		t.Error("NaN is a count")
	}
}

func TestTagsAreCleaned(t *testing.T) {
	for value, want := range map[string]string{
		"plain": "plain", "a b,c=d": "a b,c=d", `a"b'c`: `a"b'c`, `a\b`: `a\b`, "süd→nord": "süd→nord", "#x": "#x",
		"a\nb\tc\x00d\x7f": "a�b�c�d�", `a\`: "a�", `a\ b\,c\=d`: "a� b�,c�=d", `a\\`: `a\�`, "a\xffb": "a�b",
		strings.Repeat("é", MaxTagBytes):          strings.Repeat("é", MaxTagBytes/2),
		strings.Repeat("x", MaxTagBytes-1) + `\x`: strings.Repeat("x", MaxTagBytes-1),
	} {
		if got := CleanTag(value); got != want {
			t.Errorf("%.40q: %.40q, want %.40q", value, got, want)
		}
	}
}

func TestTextsAreCut(t *testing.T) {
	if v := Text(strings.Repeat("é", MaxStringBytes)).StringV(); len(v) != MaxStringBytes || !utf8.ValidString(v) {
		t.Errorf("%d bytes, want %d", len(v), MaxStringBytes)
	}
	if v := Text("a\n\"b\"\\\xff").StringV(); v != "a�\"b\"\\�" {
		t.Errorf("%q", v)
	}
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	var e Encoder
	p, to := somePoint(), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { to, _ = e.Append(to[:0], p) }); n > 0 {
		t.Errorf("%v allocations of a point", n)
	}
}

func FuzzAnyTextIsReadBack(f *testing.F) {
	for _, s := range []string{"", "a b", "a,b=c", `\`, `\\ `, "a\nb", `"`, "\xff", "é"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, tag, text string) {
		p := somePoint()
		p.Tags[1].Value, p.Fields[1].Value = tag, Text(text)
		var e Encoder
		line, err := e.Append(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(line), "\n"); n != 1 {
			t.Fatalf("%d lines in %q", n, line)
		}
		p.Tags[1].Value = CleanTag(tag)
		if tag == "" {
			p.Tags = append(p.Tags[:1], p.Tags[2:]...)
		}
		if diff := cmp.Diff(*p, decode(t, line), sameValues); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
		if again := CleanTag(CleanTag(tag)); again != CleanTag(tag) {
			t.Errorf("%q is not clean: %q", CleanTag(tag), again)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var e Encoder
	p, to := somePoint(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		to, _ = e.Append(to[:0], p)
	}
	b.SetBytes(int64(len(to)))
}
