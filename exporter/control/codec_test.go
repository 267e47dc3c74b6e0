package control

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// plan is a small one that makes sense.
func plan() stream.Plan {
	return stream.Plan{Segments: []stream.Segment{{PayloadBytes: 1000, Interval: time.Millisecond, Burst: 1, Bursts: 10}}}
}

// messages has one of each.
func messages() []Message {
	return []Message{
		{Open: &Open{Version: Version, Kind: Train, Run: "r1", Bytes: 1 << 20}},
		{Prove: &Prove{Cookie: []byte{1, 2, 3}}},
		{Transfer: &Transfer{ID: 1, Direction: sample.Reverse, Plan: plan(), Idle: time.Second}},
		{Sent: &Sent{ID: 1, Packets: 10}},
		{Cancel: &Cancel{ID: 1}},
		{Close: &Close{}},
		{Ping: &Ping{Seq: 1}},
		{Pong: &Pong{Seq: 1}},
		{Welcome: &Welcome{Version: Version, Limits: Limits{BytesPerSecond: 1e6, Duration: time.Minute, Sessions: 1, BytesPerDay: 5, LeftToday: 4}}},
		{Opened: &Opened{Session: 1 << 63, Port: 8620, Salt: 1, Host: 2}},
		{Proved: &Proved{Address: "192.0.2.1:8620"}},
		{Started: &Started{ID: 1, Clock: Clock{At: 1, Bound: time.Millisecond, Reason: "ok", Steps: 1}}},
		{Finished: &Finished{ID: 1, Received: &stream.Received{Corrupt: []stream.Corrupt{{Seq: 3, Got: []byte{1}, Want: []byte{2}}}}, Records: 7}},
		{Refusal: &Refusal{ID: 1, Reason: DayLimit, Detail: "tomorrow", RetryAfter: time.Hour}},
	}
}

func TestEachMessageIsReadAsItWasWritten(t *testing.T) {
	all := messages()
	if want := len(new(Message).parts()); len(all) != want {
		t.Fatalf("%d messages here, %d parts", len(all), want)
	}
	for i, want := range all {
		if name := new(Message).parts()[i].name; name != want.name() {
			t.Errorf("part %d is called %s, and the message %s", i, name, want.name())
		}
		b, err := encode(&want)
		if err != nil {
			t.Errorf("%s: %v", want.name(), err)
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil || len(fields) != 1 || fields[want.name()] == nil {
			t.Errorf("%s: its JSON is %s", want.name(), b)
		}
		got, err := decode(b)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", want.name(), err, cmp.Diff(want, got))
		}
	}
}

func TestNoMessageIsBothSidesExceptPings(t *testing.T) {
	for _, m := range messages() {
		both := m.says(true) && m.says(false)
		if !m.says(true) && !m.says(false) || both != (m.Ping != nil || m.Pong != nil) {
			t.Errorf("%s: client %v, responder %v", m.name(), m.says(true), m.says(false))
		}
	}
}

func TestBadMessagesAreRefusedWithTheReason(t *testing.T) {
	for _, c := range []struct{ octets, want string }{
		{`{}`, "a message of 0 parts, want exactly one"},
		{`null`, "a message of 0 parts, want exactly one"},
		{`{"ping":null}`, "a message of 0 parts, want exactly one"},
		{`{"ping":{"seq":1},"pong":{"seq":1}}`, "a message of 2 parts, want exactly one"},
		{`{"ping":{"seq":1}}{"ping":{"seq":1}}`, "more than one JSON value in a frame"},
		{`{"ping":{"seq":1}} x`, "more than one JSON value in a frame"},
		{`{"reboot":{}}`, `json: unknown field "reboot"`},
		{`{"open":{"version":1,"root":true}}`, `json: unknown field "root"`},
		{`{"open":{"version":"1"}}`, "json: cannot unmarshal string into Go struct field Open.open.version of type int"},
		{`[`, "unexpected EOF"},
		{"\xff\xfe", `invalid character 'ÿ' looking for beginning of value`},
		{`{"sent":{"id":0,"packets":1}}`, "sent: transfer 0"},
		{`{"sent":{"id":1,"packets":-1}}`, "sent -1 packets"},
		{`{"cancel":{"id":0}}`, "cancel: transfer 0"},
		{`{"started":{"id":0}}`, "started: transfer 0"},
		{`{"started":{"id":65536}}`, "json: cannot unmarshal number 65536 into Go struct field Started.started.id of type uint16"},
		{`{"opened":{"session":1,"udp_port":0}}`, "opened without a port or a session"},
		{`{"opened":{"session":0,"udp_port":1}}`, "opened without a port or a session"},
		{`{"refusal":{"reason":"mood","detail":""}}`, `refusal for the reason "mood", which is none`},
		{`{"refusal":{"reason":"busy","retry_after_ns":-1}}`, "refusal to be tried again in -1ns"},
		{`{"finished":{"id":1,"records_bytes":0}}`, "finished 1: exactly one of sent and received is wanted"},
		{`{"finished":{"id":1,"sent":{},"received":{},"records_bytes":0}}`, "finished 1: exactly one of sent and received is wanted"},
		{`{"finished":{"id":1,"sent":{},"records_bytes":-1}}`, "finished 1: -1 octets of records, want 0 to 134217728"},
		{`{"finished":{"id":1,"sent":{},"records_bytes":134217729}}`, "finished 1: 134217729 octets of records, want 0 to 134217728"},
		{`{"finished":{"id":0,"sent":{},"records_bytes":0}}`, "finished: transfer 0"},
	} {
		_, err := decode([]byte(c.octets))
		if want := "control: protocol violated: " + c.want; err == nil || err.Error() != want || !errors.Is(err, ErrProtocol) {
			t.Errorf("%s:\n got %v\nwant %s", c.octets, err, want)
		}
	}
}

func TestTransferIsCheckedBeforeItIsTaken(t *testing.T) {
	good := Transfer{ID: 1, Plan: plan(), Idle: time.Second}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Transfer){
		"control: transfer 0: want 1 to 65535":                                  func(t *Transfer) { t.ID = 0 },
		"control: transfer 1: direction 2: want 0, forward, or 1, reverse":      func(t *Transfer) { t.Direction = 2 },
		"control: transfer 1: idle 99ms: want 100ms to 2m0s":                    func(t *Transfer) { t.Idle = 99 * time.Millisecond },
		"control: transfer 1: idle 2m0.000000001s: want 100ms to 2m0s":          func(t *Transfer) { t.Idle = 2*time.Minute + 1 },
		"control: transfer 1: stream: no such plan: 0 segments, want 1 to 4096": func(t *Transfer) { t.Plan.Segments = nil },
		"control: transfer 1: stream: no such plan: segment 0: 31 octets a packet, want 32 to 65507": func(t *Transfer) {
			t.Plan = plan()
			t.Plan.Segments[0].PayloadBytes = 31
		},
	} {
		bad := good
		spoil(&bad)
		if err := bad.Check(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestPlanThatDoesNotFitIsNotSent(t *testing.T) {
	m := Message{Transfer: &Transfer{ID: 1, Idle: time.Second}}
	for range stream.MaxSegments {
		m.Transfer.Plan.Segments = append(m.Transfer.Plan.Segments, plan().Segments...)
	}
	if _, err := encode(&m); err == nil || !strings.HasSuffix(err.Error(), "want at most 65536: plan fewer segments") {
		t.Errorf("%v", err)
	}
	m.Transfer.Plan.Segments = m.Transfer.Plan.Segments[:600] // what MaxMessageBytes says
	if _, err := encode(&m); err != nil {
		t.Error(err)
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
	f.Add([]byte(`{"transfer":{"id":1,"direction":1,"plan":{"feedback_ns":50000000,"segments":[{"payload_bytes":100,"interval_ns":1000000,"burst":1,"bursts":10}]},"idle_ns":1000000000}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("%v", err)
			}
			return
		}
		if m.Transfer != nil {
			_ = m.Transfer.Check() // must not panic
		}
		again, err := encode(&m)
		if err != nil {
			if !strings.HasSuffix(err.Error(), "plan fewer segments") { // the spelling that came was shorter
				t.Errorf("%s: %v", b, err)
			}
			return
		}
		same, err := decode(again)
		if err != nil || !cmp.Equal(same, m, cmpopts.EquateEmpty()) {
			t.Errorf("%s\n%s\n%v %s", b, again, err, cmp.Diff(m, same))
		}
	})
}
