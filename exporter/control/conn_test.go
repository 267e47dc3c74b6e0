package control

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// ended waits for the end of a connection and returns how long that took.
func ended(t *testing.T, c *Conn, limit time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case <-c.Done():
	case <-time.After(limit):
		t.Fatalf("not ended within %v", limit)
	}
	return time.Since(begin)
}

// said waits for the next message.
func said(t *testing.T, c *Conn) Message {
	t.Helper()
	m, _, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestQuietSessionLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		l.slow(0, 30*time.Millisecond)
		l.slow(1, 200*time.Millisecond)
		time.Sleep(time.Hour)
		if client.Err() != nil || responder.Err() != nil {
			t.Errorf("client %v, responder %v", client.Err(), responder.Err())
		}
	})
}

func TestConnectionKilledUnderBothEndsIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		time.Sleep(time.Minute)
		l.cut()
		for name, c := range map[string]*Conn{"client": client, "responder": responder} {
			if took := ended(t, c, time.Second); took > 0 || !errors.Is(c.Err(), ErrLost) {
				t.Errorf("%s: after %v: %v", name, took, c.Err())
			}
		}
	})
}

func TestPeerThatVanishesWithoutAWordIsGivenUpAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		time.Sleep(time.Minute + 17*time.Millisecond)
		l.freeze()
		begin := time.Now()
		for name, c := range map[string]*Conn{"client": client, "responder": responder} {
			ended(t, c, time.Minute)
			if took := time.Since(begin); took > Outage || took < Outage-PingEvery || !errors.Is(c.Err(), ErrSilent) {
				t.Errorf("%s: after %v: %v", name, took, c.Err())
			}
		}
	})
}

// loaded begins a transfer on both ends and fills the queue of its direction.
func loaded(t *testing.T, client, responder *Conn, l *link, idle, queue time.Duration) {
	t.Helper()
	if err := client.Write(Message{Transfer: &Transfer{ID: 1, Direction: sample.Reverse, Plan: plan(), Idle: idle}}); err != nil {
		t.Fatal(err)
	}
	if m := said(t, responder); m.Transfer == nil {
		t.Fatalf("%s", m.name())
	}
	if err := responder.Write(Message{Started: &Started{ID: 1}}); err != nil {
		t.Fatal(err)
	}
	said(t, client)
	l.slow(1, queue) // all at once: the longest silence that a queue makes
}

func TestSessionOutlivesAQueueAsLongAsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		const idle = 10 * time.Second
		loaded(t, client, responder, l, idle, idle)
		time.Sleep(30 * time.Second)
		if err := responder.WriteFinished(Finished{ID: 1, Sent: &stream.Sent{}}, nil); err != nil {
			t.Fatal(err)
		}
		said(t, client)
		l.slow(1, 0)
		time.Sleep(time.Minute)
		if client.Err() != nil || responder.Err() != nil {
			t.Errorf("client %v, responder %v", client.Err(), responder.Err())
		}
	})
}

func TestSessionDoesNotOutliveAQueueOutsideATransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, l := pair(t)
		l.slow(1, 2*Outage)
		ended(t, client, 2*Outage)
		if !errors.Is(client.Err(), ErrSilent) {
			t.Error(client.Err())
		}
	})
}

// The responder sends, but not to a client that is silent (package responder): it waits as
// long as the client does, which sends nothing.
func TestPeerThatVanishesUnderLoadIsGivenUpAfterAnOutage(t *testing.T) {
	for idle, most := range map[time.Duration]time.Duration{3 * time.Second: Outage, 15 * time.Second: 15*time.Second + Silence} {
		synctest.Test(t, func(t *testing.T) {
			client, responder, l := pair(t)
			loaded(t, client, responder, l, idle, 0)
			time.Sleep(time.Second)
			l.freeze()
			begin := time.Now()
			for side, c := range map[string]*Conn{"responder": responder, "client": client} {
				ended(t, c, time.Minute)
				if took := time.Since(begin); took < most-PingEvery || took > most || !errors.Is(c.Err(), ErrSilent) {
					t.Errorf("%s, idle %v: after %v: %v", side, idle, took, c.Err())
				}
			}
		})
	}
}

func TestSessionOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		for range 3 {
			// The bubble's time: the outage and what comes between two of them, and no real time passes.
			l.slow(0, Outage-time.Second)
			time.Sleep(time.Second)
			l.slow(0, 0)
			time.Sleep(time.Minute)
		}
		if client.Err() != nil || responder.Err() != nil {
			t.Errorf("client %v, responder %v", client.Err(), responder.Err())
		}
	})
}

func TestPeerThatVanishesAfterATransferIsGivenUpAfterAnOutage(t *testing.T) {
	for name, finish := range map[string]func(*Conn) error{
		"finished": func(c *Conn) error { return c.WriteFinished(Finished{ID: 1, Sent: &stream.Sent{}}, nil) },
		"refused":  func(c *Conn) error { return c.Write(Message{Refusal: &Refusal{ID: 1, Reason: DayLimit}}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			client, responder, l := pair(t)
			loaded(t, client, responder, l, MaxIdle, 0)
			if err := finish(responder); err != nil {
				t.Fatal(err)
			}
			said(t, client)
			time.Sleep(time.Second) // the question after the end is answered
			l.freeze()
			begin := time.Now()
			for side, c := range map[string]*Conn{"client": client, "responder": responder} {
				ended(t, c, time.Minute)
				if took := time.Since(begin); took > Outage || !errors.Is(c.Err(), ErrSilent) {
					t.Errorf("%s: %s: after %v: %v", name, side, took, c.Err())
				}
			}
		})
	}
}

func TestRecordsPassWhileBothSidesGoOnSpeaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		l.slow(1, 100*time.Millisecond)
		want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 200_001)
		go func() {
			if err := responder.WriteFinished(Finished{ID: 1, Received: &stream.Received{Dropped: 3}}, want); err != nil {
				t.Error(err)
			}
			if err := responder.Write(Message{Started: &Started{ID: 2}}); err != nil {
				t.Error(err)
			}
		}()
		m, records, err := client.Read(t.Context())
		if err != nil || m.Finished == nil || m.Finished.Received.Dropped != 3 || !bytes.Equal(records, want) {
			t.Errorf("%v %+v, %d octets of records, want %d", err, m.Finished, len(records), len(want))
		}
		if m := said(t, client); m.Started == nil {
			t.Errorf("%s after the records", m.name())
		}
	})
}

func TestCloseIsHeardOnTheOtherSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, _ := pair(t)
		if err := client.Close(); err != nil || !errors.Is(client.Err(), ErrClosed) {
			t.Errorf("%v, %v", err, client.Err())
		}
		ended(t, responder, time.Second)
		if !errors.Is(responder.Err(), ErrClosed) {
			t.Errorf("responder: %v, want closed", responder.Err())
		}
		if err := client.Write(Message{Cancel: &Cancel{ID: 1}}); !errors.Is(err, ErrClosed) {
			t.Errorf("writing after the end: %v", err)
		}
		if _, _, err := responder.Read(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("reading after the end: %v", err)
		}
		if client.Close() != nil || responder.Close() != nil {
			t.Error("closing again is an error")
		}
	})
}

func TestRefusedSessionEndsAndTheClientKnowsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		l.slow(1, 50*time.Millisecond)
		want := &Refusal{Reason: Busy, Detail: "another run", RetryAfter: 20 * time.Second}
		begin := time.Now()
		if err := responder.Refuse(want); err != nil || time.Since(begin) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ended(t, client, time.Second)
		var got *Refusal
		if !errors.As(client.Err(), &got) || !cmp.Equal(got, want) {
			t.Errorf("client: %v", client.Err())
		}
	})
}

func TestRefusalIsNotWaitedForByWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, inner := net.Pipe() // nobody reads
		c := newConn(inner, nil, false)
		begin := time.Now()
		if err := c.Refuse(&Refusal{Reason: ShuttingDown}); err == nil {
			t.Error("it was read by nobody, and that is no error")
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestPeerThatDoesNotReadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, inner := net.Pipe()
		c := newConn(inner, nil, false)
		var peer sync.WaitGroup
		defer peer.Wait()
		defer c.Close()
		peer.Go(func() { // it pings and never reads
			for seq := uint64(1); ; seq++ {
				b, _ := encode(&Message{Ping: &Ping{Seq: seq}})
				if _, err := end.Write(appendFrame(nil, frameMessage, b)); err != nil {
					return
				}
				time.Sleep(PingEvery)
			}
		})
		err := c.WriteFinished(Finished{ID: 1, Sent: &stream.Sent{}}, make([]byte, 1<<20))
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "the peer does not read") {
			t.Error(err)
		}
	})
}

func TestFrameThatDripsEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := raw(t, false)
		go io.Copy(io.Discard, peer)
		frame := appendFrame(nil, frameMessage, bytes.Repeat([]byte{' '}, 1000))
		begin := time.Now()
		for i := range frame {
			if _, err := peer.Write(frame[i : i+1]); err != nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		ended(t, c, time.Second)
		if took := time.Since(begin); took > frameTime+Outage+time.Second || !errors.Is(c.Err(), ErrProtocol) {
			t.Errorf("after %v: %v", took, c.Err())
		}
	})
}

func TestWhatAPeerMustNotSayEndsTheConnection(t *testing.T) {
	frame := func(kind byte, payload string) string { return string(appendFrame(nil, kind, []byte(payload))) }
	for _, c := range []struct {
		name, octets, want string
		client             bool // the end under test
	}{
		{"random octets", "\x8f\x02random", "frame of type 143, want 1 or 2", false},
		{"oversized", "\x01\x7f\xff\xff\xff", "frame of 2147483647 octets, want 1 to 65536", false},
		{"no JSON", frame(1, "hello"), "invalid character 'h' looking for beginning of value", false},
		{"a client's words to a client", frame(1, `{"cancel":{"id":1}}`), "this side says cancel, not the peer", true},
		{"a responder's words to a responder", frame(1, `{"started":{"id":1}}`), "this side says started, not the peer", false},
		{"a refusal to a responder", frame(1, `{"refusal":{"reason":"busy"}}`), "this side says refusal, not the peer", false},
		{"records of nothing", frame(2, "x"), "records that nothing announced", true},
		{"a pong to no ping", frame(1, `{"pong":{"seq":99}}`), "pong 99 to no ping", false},
		{"too many records", frame(1, `{"finished":{"id":1,"sent":{},"records_bytes":1}}`) + frame(2, "xx"), "2 octets of records, and 1 were announced", true},
		{"words among records", frame(1, `{"finished":{"id":1,"sent":{},"records_bytes":1}}`) + frame(1, `{"started":{"id":1}}`), "started among the records", true},
		{"a flood", strings.Repeat(frame(1, `{"cancel":{"id":1}}`), inboxMessages+1), "more than 64 messages at once", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, peer := raw(t, c.client)
			go io.Copy(io.Discard, peer)
			go io.WriteString(peer, c.octets)
			took := ended(t, conn, time.Second)
			if took > 0 || !errors.Is(conn.Err(), ErrProtocol) || !strings.Contains(conn.Err().Error(), c.want) {
				t.Errorf("%s: after %v:\n got %v\nwant %s", c.name, took, conn.Err(), c.want)
			}
		})
	}
}

func TestTruncatedFrameIsALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := raw(t, true)
		go io.Copy(io.Discard, peer)
		io.WriteString(peer, "\x01\x00\x00\x00\x09{")
		time.Sleep(time.Millisecond)
		peer.Close()
		ended(t, c, time.Second)
		if !errors.Is(c.Err(), ErrLost) || !errors.Is(c.Err(), io.ErrUnexpectedEOF) {
			t.Error(c.Err())
		}
	})
}

func TestMessagesBeforeTheEndAreStillRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, responder, l := pair(t)
		for id := range uint16(3) {
			if err := client.Write(Message{Cancel: &Cancel{ID: id + 1}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		l.cut()
		ended(t, responder, time.Second)
		for id := range uint16(3) {
			if m := said(t, responder); m.Cancel == nil || m.Cancel.ID != id+1 {
				t.Errorf("%s, want cancel %d", m.name(), id+1)
			}
		}
		if _, _, err := responder.Read(t.Context()); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

func TestIdleSessionSaysLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, inner := net.Pipe()
		c := newConn(end, nil, true)
		defer c.Close()
		said := 0
		go func() {
			b := make([]byte, 1<<16)
			for {
				if _, err := inner.Read(b); err != nil {
					return
				}
				said++
			}
		}()
		for seq := range uint64(400) { // a peer that pings, and is answered
			b, _ := encode(&Message{Ping: &Ping{Seq: seq + 1}})
			if _, err := inner.Write(appendFrame(nil, frameMessage, b)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(PingEvery / 2)
		}
		synctest.Wait()
		if said > 410 { // pongs alone: each is a sign of life
			t.Errorf("%d frames in answer to 400", said)
		}
	})
}
