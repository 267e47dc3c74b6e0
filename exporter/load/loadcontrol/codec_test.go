package loadcontrol

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// messages returns one of each.
func messages() []Message {
	return []Message{
		{Open: &Open{Traffic: "udp", Parameters: json.RawMessage(`{"a":1}`), Test: "train", Run: "r1", Bytes: 1 << 20, Duration: time.Minute}},
		{Reflect: &Reflect{Bytes: 7}},
		{Close: &Close{}},
		{Welcome: &Welcome{Limits: Limits{BytesPerSecond: 1e6, Duration: time.Minute, Sessions: 1, BytesPerDay: 5, LeftToday: 4}}},
		{Opened: &Opened{Reply: json.RawMessage(`[1,2]`)}},
		{Reflecting: &Reflecting{Port: 8621, Key: []byte("0123456789abcdef")}},
		{Refusal: &Refusal{ID: 1, Reason: DayLimit, Detail: "tomorrow", RetryAfter: time.Hour}},
		{Traffic: &TrafficMessage{Name: "traffic", Body: json.RawMessage(`"x"`)}},
	}
}

func TestEachMessageIsDecodedAsEncoded(t *testing.T) {
	all := messages()
	if want := len(new(Message).parts()); len(all) != want {
		t.Fatalf("%d messages here, %d parts", len(all), want)
	}
	for i, want := range all {
		if name := new(Message).parts()[i].name; name != want.name() {
			t.Errorf("part %d is %s, the message %s", i, name, want.name())
		}
		b, err := encode(&want)
		if err != nil {
			t.Errorf("%s: %v", want.name(), err)
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil || len(fields) != 1 || fields[want.name()] == nil {
			t.Errorf("%s: JSON is %s", want.name(), b)
		}
		got, err := decode(b)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", want.name(), err, cmp.Diff(want, got))
		}
	}
}

func TestOnlyMessagesOfTheTrafficAreSentByBothEnds(t *testing.T) {
	for _, m := range messages() {
		both := m.allowed(true) && m.allowed(false)
		if !m.allowed(true) && !m.allowed(false) || both != (m.Traffic != nil) {
			t.Errorf("%s: client %v, load server %v", m.name(), m.allowed(true), m.allowed(false))
		}
	}
}

func TestBadMessagesAreRejectedWithTheReason(t *testing.T) {
	for _, c := range []struct{ bytes, want string }{
		{`{}`, "message has 0 parts, want exactly one"},
		{`null`, "message has 0 parts, want exactly one"},
		{`{"close":null}`, "message has 0 parts, want exactly one"},
		{`{"close":{},"opened":{}}`, "message has 2 parts, want exactly one"},
		{`{"close":{}}{"close":{}}`, "more than one JSON value"},
		{`{"close":{}} x`, "more than one JSON value"},
		{`{"reboot":{}}`, `json: unknown field "reboot"`},
		{`{"open":{"bytes":1,"root":true}}`, `json: unknown field "root"`},
		{`{"open":{"bytes":"1"}}`, "open.bytes: got a string, want a whole number"},
		{`[`, "unexpected EOF"},
		{"\xff\xfe", `invalid character 'ÿ' looking for beginning of value`},
		{`{"refusal":{"reason":"mood","detail":""}}`, `refusal has the unknown reason "mood"`},
		{`{"refusal":{"reason":"busy","retry_after_ns":-1}}`, "retry_after of a refusal is -1ns; it must not be negative"},
		{`{"refusal":{"reason":"busy","id":65536}}`, "refusal.id: got the number 65536, want a whole number from 0 to 65535"},
		{`{"traffic":{"body":{}}}`, "message has no name"},
	} {
		_, err := decode([]byte(c.bytes))
		if want := "loadcontrol: protocol violated: " + c.want; err == nil || err.Error() != want || !errors.Is(err, ErrProtocol) {
			t.Errorf("%s:\n got %v\nwant %s", c.bytes, err, want)
		}
	}
}

func TestContentIsDecodedStrictly(t *testing.T) {
	var body struct {
		N int `json:"n"`
	}
	if err := (&TrafficMessage{Name: "x", Body: json.RawMessage(`{"n":3}`)}).Into(&body); err != nil || body.N != 3 {
		t.Errorf("%+v, %v", body, err)
	}
	for content, want := range map[string]string{
		``:            "EOF",
		`{"n":"3"}`:   "n: got a string, want a whole number",
		`{"m":3}`:     `json: unknown field "m"`,
		`{"n":3}{}`:   "more than one JSON value",
		`{"n":3} end`: "more than one JSON value",
	} {
		err := (&TrafficMessage{Name: "x", Body: json.RawMessage(content)}).Into(&body)
		if want := "loadcontrol: protocol violated: x: " + want; err == nil || err.Error() != want || !errors.Is(err, ErrProtocol) {
			t.Errorf("%s:\n got %v\nwant %s", content, err, want)
		}
	}
}

func TestMessageThatDoesNotFitIsNotSent(t *testing.T) {
	b, err := json.Marshal(strings.Repeat("x", MaxMessageBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encode(&Message{Traffic: &TrafficMessage{Name: "x", Body: b}}); err == nil || !strings.HasSuffix(err.Error(), "want at most 65536: plan fewer segments") {
		t.Errorf("%v", err)
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		b, err := encode(&m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"traffic":{"name":"start","body":{"id":1,"direction":1,"plan":{"segments":[{"payload_bytes":100,"interval_ns":1000000,"burst":1,"bursts":10}]},"idle_ns":1000000000}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("%v", err)
			}
			return
		}
		if m.Traffic != nil {
			var body any
			_ = m.Traffic.Into(&body) // must not panic
		}
		again, err := encode(&m)
		if err != nil {
			if !strings.HasSuffix(err.Error(), "plan fewer segments") { // the received encoding was shorter
				t.Errorf("%s: %v", b, err)
			}
			return
		}
		same, err := decode(again)
		if err != nil {
			t.Fatalf("%s\n%s\n%v", b, again, err)
		}
		if last, err := encode(&same); err != nil || !bytes.Equal(last, again) { // the content may have had spaces
			t.Errorf("%s\n%s\n%v %s", b, again, err, cmp.Diff(m, same))
		}
	})
}
