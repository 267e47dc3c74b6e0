package udptraffic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
)

// receiveAs returns the content of the next message; the end of the connection may be the tested event.
func receiveAs[B any](t *testing.T, c *loadcontrol.Conn, name string) (body B) {
	t.Helper()
	m, _, err := c.Read(context.Background())
	if err != nil {
		return body
	}
	if m.Traffic == nil || m.Traffic.Name != name {
		t.Errorf("got %+v, want %s", m, name)
	} else if err := m.Traffic.Into(&body); err != nil {
		t.Error(err)
	}
	return body
}

// played returns a client of a simulated load server that opens the session and follows a script.
func played(t *testing.T, script func(*loadcontrol.Conn)) *Client {
	t.Helper()
	over := converse(t, func(c *loadcontrol.Conn) {
		if m, _, err := c.Read(context.Background()); err != nil || m.Open == nil || m.Open.Traffic != "udp" {
			t.Errorf("got %+v, %v, want open", m, err)
		}
		_ = c.SendOpened(Reply{Session: 7, Port: 99}) // its error is the end of the connection
		script(c)
	})
	c, err := Open(t.Context(), over, loadcontrol.Open{Run: "r", Bytes: 1, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWholeConversation(t *testing.T) {
	records := bytes.Repeat([]byte("records "), 50_000)
	cookie := []byte{9, 8, 7}
	ended := make(chan error, 1)
	c := played(t, func(c *loadcontrol.Conn) {
		if m := receiveAs[Prove](t, c, "prove"); !bytes.Equal(m.Cookie, cookie) {
			t.Errorf("%+v", m)
		}
		_ = c.SendMessage("proved", Proved{Address: "127.0.0.1:5"}, nil)
		if m := receiveAs[Start](t, c, "start"); m.ID != 1 || m.Direction != sample.Forward || m.Plan.Packets() != 100 {
			t.Errorf("%+v", m)
		}
		_ = c.SendMessage("started", Started{ID: 1}, nil)
		if m := receiveAs[Sent](t, c, "sent"); m.ID != 1 || m.Packets != 10 {
			t.Errorf("%+v", m)
		}
		_ = c.SendMessage("finished", Finished{ID: 1, Received: &stream.Received{Dropped: 2}}, records)
		if m := receiveAs[Start](t, c, "start"); m.Direction != sample.Reverse {
			t.Errorf("%+v", m)
		}
		_ = c.SendMessage("started", Started{ID: 2}, nil)
		if m := receiveAs[Cancel](t, c, "cancel"); m.ID != 2 {
			t.Errorf("%+v", m)
		}
		_ = c.SendMessage("finished", Finished{ID: 2, Sent: &stream.Sent{Planned: 10}, Error: "canceled"}, nil)
		receiveAs[Start](t, c, "start")
		_ = c.SendMessage("refused", loadcontrol.Refusal{ID: 3, Reason: loadcontrol.DayLimit, RetryAfter: time.Hour}, nil)
		<-c.Done()
		ended <- c.Err()
	})
	if c.Reply.Session != 7 || c.Reply.Port != 99 {
		t.Errorf("%+v", c.Reply)
	}
	if err := c.Prove(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	forward := startOf(1, sample.Forward)
	if started, err := c.Start(t.Context(), forward); err != nil || started.ID != 1 {
		t.Fatal(started, err)
	}
	if _, err := c.Start(t.Context(), forward); err == nil || !strings.Contains(err.Error(), "transfer 1 is in progress") {
		t.Error(err)
	}
	if err := c.Sent(t.Context(), 1, 10); err != nil {
		t.Fatal(err)
	}
	end, got, err := c.Wait(t.Context(), 1)
	if err != nil || end.Received.Dropped != 2 || !bytes.Equal(got, records) {
		t.Fatal(end, len(got), err)
	}
	if _, err := c.Start(t.Context(), startOf(2, sample.Reverse)); err != nil {
		t.Fatal(err)
	}
	_ = c.SendMessage(msgCancel, Cancel{ID: 2})
	if finished, got, err := c.Wait(t.Context(), 2); err != nil || finished.Error != "canceled" || finished.Sent.Planned != 10 || got != nil {
		t.Fatal(finished, got, err)
	}
	var refusal *loadcontrol.Refusal
	if _, err := c.Start(t.Context(), startOf(3, sample.Forward)); !errors.As(err, &refusal) || refusal.Reason != loadcontrol.DayLimit || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	if _, _, err := c.Wait(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "transfer 3 was not started") {
		t.Error(err)
	}
	if n := len(c.pending); n > 0 {
		t.Errorf("%d transfers are still pending", n)
	}
	if err := c.Close(); err != nil || !errors.Is(c.Err(), loadcontrol.ErrClosed) {
		t.Error(err, c.Err())
	}
	if err := <-ended; !errors.Is(err, loadcontrol.ErrClosed) {
		t.Errorf("the load server's error is %v", err)
	}
}

func TestReplyToOpenNeedsAPortAndASession(t *testing.T) {
	for _, reply := range []any{nil, 5, Reply{Session: 1}, Reply{Port: 1}, "udp"} {
		over := converse(t, func(c *loadcontrol.Conn) {
			_, _, _ = c.Read(context.Background()) // open
			_ = c.SendOpened(reply)                // as above
			<-c.Done()
		})
		_, err := Open(t.Context(), over, loadcontrol.Open{Run: "r", Bytes: 1, Duration: time.Second})
		if err == nil || !strings.HasSuffix(err.Error(), "reply to open has no port or no session") {
			t.Errorf("%v: %v", reply, err)
		}
	}
}

func TestUnexpectedReplyEndsTheSession(t *testing.T) {
	type word struct {
		name string
		body any
	}
	started := word{"started", Started{ID: 1}}
	received := word{"finished", Finished{ID: 1, Received: &stream.Received{}}}
	for _, c := range []struct {
		name string
		says []word
		want string
	}{
		{"an unknown message", []word{{"reboot", struct{}{}}}, `unexpected "reboot"`},
		{"a message of a client", []word{{"start", startOf(1, 0)}}, `unexpected "start"`},
		{"proved", []word{{"proved", Proved{}}}, "unexpected proved"},
		{"started twice", []word{started, started}, "unexpected started"},
		{"another started", []word{{"started", Started{ID: 2}}}, "unexpected started"},
		{"started nothing", []word{{"started", Started{}}}, "unexpected started"},
		{"finished first", []word{received}, "unexpected finished"},
		{"the wrong end", []word{started, {"finished", Finished{ID: 1, Sent: &stream.Sent{}}}}, "it must have the load server's records of a forward transfer only"},
		{"both ends", []word{started, {"finished", Finished{ID: 1, Sent: &stream.Sent{}, Received: &stream.Received{}}}}, "it must have the load server's records of a forward transfer only"},
		{"no end", []word{started, {"finished", Finished{ID: 1}}}, "it must have the load server's records of a forward transfer only"},
		{"a refusal of nothing", []word{{"refused", loadcontrol.Refusal{ID: 2, Reason: loadcontrol.Busy}}}, "unexpected refused"},
		{"a refusal for no reason", []word{{"refused", loadcontrol.Refusal{ID: 1, Reason: "mood"}}}, `refusal has the unknown reason "mood"`},
		{"a refusal with a negative retry_after", []word{{"refused", loadcontrol.Refusal{ID: 1, Reason: loadcontrol.Busy, RetryAfter: -1}}}, "retry_after of a refusal is -1ns"},
		{"an unknown field", []word{{"started", map[string]int{"id": 1, "x": 2}}}, `unknown field "x"`},
		{"no number of a transfer", []word{{"started", map[string]int{"id": 65536}}}, "got the number 65536"},
	} {
		client := played(t, func(conn *loadcontrol.Conn) {
			receiveAs[Start](t, conn, "start")
			for _, w := range c.says {
				_ = conn.SendMessage(w.name, w.body, nil) // the test checks the end of the connection
			}
			<-conn.Done()
		})
		_, _ = client.Start(t.Context(), startOf(1, sample.Forward))
		_, _, err := client.Wait(t.Context(), 1)
		<-client.Done()
		if !errors.Is(client.Err(), loadcontrol.ErrProtocol) || !strings.Contains(client.Err().Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, client.Err(), c.want)
		}
		if err == nil {
			t.Errorf("%s: Wait returned no error", c.name)
		}
	}
}

func TestRefusalOfATransferIsOneLine(t *testing.T) {
	client := played(t, func(c *loadcontrol.Conn) {
		receiveAs[Start](t, c, "start")
		_ = c.SendMessage("refused", loadcontrol.Refusal{ID: 1, Reason: loadcontrol.Busy, Detail: "a\nb\x1b"}, nil) // as above
		<-c.Done()
	})
	_, err := client.Start(t.Context(), startOf(1, sample.Forward))
	if err == nil || !strings.HasSuffix(err.Error(), "transfer 1: refused: busy: a?b?") {
		t.Errorf("%q", err)
	}
}

func TestEndOfTheConnectionEndsWaits(t *testing.T) {
	client := played(t, func(c *loadcontrol.Conn) {
		receiveAs[Start](t, c, "start")
		_ = c.SendMessage("started", Started{ID: 1}, nil) // as above
		receiveAs[Sent](t, c, "sent")                     // and then it closes
	})
	if _, err := client.Start(t.Context(), startOf(1, sample.Forward)); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		_, _, err := client.Wait(context.Background(), 1)
		waits <- err
	}()
	if err := client.Sent(t.Context(), 1, 10); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; !errors.Is(err, loadcontrol.ErrLost) {
		t.Error(err)
	}
	if err := client.Prove(t.Context(), nil); !errors.Is(err, loadcontrol.ErrLost) {
		t.Error(err)
	}
	if _, err := client.Start(t.Context(), startOf(2, sample.Forward)); !errors.Is(err, loadcontrol.ErrLost) {
		t.Error(err)
	}
}

func TestWaitCanBeRepeatedAfterAnErrorOfItsContext(t *testing.T) {
	goOn := make(chan struct{})
	client := played(t, func(c *loadcontrol.Conn) {
		receiveAs[Start](t, c, "start")
		_ = c.SendMessage("started", Started{ID: 1}, nil) // as above
		<-goOn
		_ = c.SendMessage("finished", Finished{ID: 1, Received: &stream.Received{}}, nil) // as above
		<-c.Done()
	})
	if _, err := client.Start(t.Context(), startOf(1, sample.Forward)); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, _, err := client.Wait(ctx, 1); !errors.Is(err, reason) {
		t.Error(err)
	}
	if err := client.Sent(ctx, 1, 1); !errors.Is(err, reason) {
		t.Error(err)
	}
	close(goOn)
	if finished, _, err := client.Wait(t.Context(), 1); err != nil || finished == nil {
		t.Error(err)
	}
}

func TestManyTransfersInSequence(t *testing.T) {
	const transfers = 100
	client := played(t, func(c *loadcontrol.Conn) {
		for range transfers {
			id := receiveAs[Start](t, c, "start").ID
			_ = c.SendMessage("started", Started{ID: id}, nil)                                         // as above
			_ = c.SendMessage("finished", Finished{ID: id, Sent: &stream.Sent{}}, fmt.Append(nil, id)) // as above
		}
		<-c.Done()
	})
	for id := range uint16(transfers) {
		id++
		if _, err := client.Start(t.Context(), startOf(id, sample.Reverse)); err != nil {
			t.Fatal(err)
		}
		if _, records, err := client.Wait(t.Context(), id); err != nil || string(records) != fmt.Sprint(id) {
			t.Fatal(string(records), err)
		}
	}
	if n := len(client.pending); n > 0 {
		t.Errorf("%d transfers are still pending", n)
	}
}

func TestPlanAboveTheMessageLimitIsNotSent(t *testing.T) {
	client := played(t, func(c *loadcontrol.Conn) { <-c.Done() })
	x := startOf(1, sample.Forward)
	one := x.Plan.Segments[0]
	one.Bursts = 1
	x.Plan.Segments = repeat(one, stream.MaxSegments)
	if _, err := client.Start(t.Context(), x); err == nil || !strings.HasSuffix(err.Error(), "want at most 65536: plan fewer segments") || client.Err() != nil {
		t.Errorf("%v, %v", err, client.Err())
	}
	x.Plan.Segments = x.Plan.Segments[:600] // the number of loadcontrol.MaxMessageBytes
	if b, err := json.Marshal(x); err != nil || len(b) > loadcontrol.MaxMessageBytes-100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// FuzzDeliver sends a client arbitrary messages of a load server during a transfer.
func FuzzDeliver(f *testing.F) {
	for _, m := range []struct {
		name string
		body any
	}{
		{"proved", Proved{Address: "x"}},
		{"started", Started{ID: 1}},
		{"refused", loadcontrol.Refusal{ID: 1, Reason: loadcontrol.Busy}},
		{"finished", Finished{ID: 2, Received: &stream.Received{Corrupt: []stream.Corrupt{{Seq: 3, Got: []byte{1}, Want: []byte{2}}}}}},
		{"finished", Finished{ID: 2, Sent: &stream.Sent{}}},
	} {
		b, err := json.Marshal(m.body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.name, b, m.name, b, []byte{1})
	}
	f.Fuzz(func(t *testing.T, name string, body []byte, next string, nextBody, records []byte) {
		wait := func() *pending {
			return &pending{begun: make(chan reply, 1), over: make(chan reply, 1)}
		}
		c := &Client{pending: map[uint16]*pending{0: wait(), 1: wait(), 2: wait()}}
		c.pending[2].running = true
		for _, m := range []*loadcontrol.TrafficMessage{{Name: name, Body: body}, {Name: next, Body: nextBody}, {Name: next, Body: nextBody}} {
			if err := c.deliver(m, records); err != nil && !errors.Is(err, loadcontrol.ErrProtocol) {
				t.Errorf("%v", err)
			}
		}
		for _, x := range c.pending {
			select {
			case end := <-x.over:
				_, _ = stream.ParseReceived(end.records, stream.MaxPackets) // must not panic
				_, _ = stream.ParseSent(end.records, stream.MaxPackets)     // must not panic
			default:
			}
		}
	})
}
