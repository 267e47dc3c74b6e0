package loadcontrol

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
)

// message is a message of the traffic.
func message(name string) Message { return Message{Traffic: &TrafficMessage{Name: name}} }

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

// received returns the next message.
func received(t *testing.T, c *Conn) Message {
	t.Helper()
	m, _, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestIdleSessionStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		l.slow(0, 30*time.Millisecond)
		l.slow(1, 200*time.Millisecond)
		// simulated time (synctest)
		time.Sleep(time.Hour)
		if client.Err() != nil || loadServer.Err() != nil {
			t.Errorf("client %v, load server %v", client.Err(), loadServer.Err())
		}
	})
}

func TestCutConnectionEndsBothEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		time.Sleep(time.Minute) // simulated time (synctest)
		l.cut()
		for name, c := range map[string]*Conn{"client": client, "load_server": loadServer} {
			if took := ended(t, c, time.Second); took > 0 || !errors.Is(c.Err(), ErrLost) {
				t.Errorf("%s: after %v: %v", name, took, c.Err())
			}
		}
	})
}

// The traffic has the idle timeout, not the connection.
func TestSilentPeerDoesNotEndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		l.freeze()
		time.Sleep(time.Hour) // simulated time (synctest)
		if client.Err() != nil || loadServer.Err() != nil {
			t.Errorf("client %v, load server %v", client.Err(), loadServer.Err())
		}
	})
}

func TestMessagesArriveAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		for range 3 {
			const outage = 9 * time.Second
			l.slow(0, outage)
			l.slow(1, outage)
			begin := time.Now()
			send(client, message("there"))
			send(loadServer, message("back"))
			if m, n := received(t, loadServer), received(t, client); m.name() != "there" || n.name() != "back" || time.Since(begin) != outage {
				t.Errorf("%s and %s after %v", m.name(), n.name(), time.Since(begin))
			}
			l.slow(0, 0)
			l.slow(1, 0)
			time.Sleep(time.Minute) // simulated time (synctest)
		}
		if client.Err() != nil || loadServer.Err() != nil {
			t.Errorf("client %v, load server %v", client.Err(), loadServer.Err())
		}
	})
}

func TestLastReceivedIsTheTimeOfTheLastBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		begin := time.Now()
		l.slow(1, time.Second)
		time.Sleep(time.Minute) // simulated time (synctest)
		if !client.LastReceived().Equal(begin) {
			t.Errorf("nothing was received, but LastReceived is %v after the beginning", client.LastReceived().Sub(begin))
		}
		send(loadServer, message("x"))
		received(t, client)
		time.Sleep(time.Minute) // simulated time (synctest)
		if got := client.LastReceived().Sub(begin); got != time.Minute+time.Second {
			t.Errorf("LastReceived is %v after the beginning, want 1m1s", got)
		}
		if !loadServer.LastReceived().Equal(begin) {
			t.Error("a sent message changed LastReceived")
		}
	})
}

func TestBinaryDataPassesAmongMessagesOfBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		l.slow(1, 100*time.Millisecond)
		want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 200_001)
		go func() {
			if err := loadServer.SendMessage("finished", 3, want); err != nil {
				t.Error(err)
			}
			if err := loadServer.SendMessage("started", nil, nil); err != nil {
				t.Error(err)
			}
		}()
		for range 10 {
			send(client, message("meanwhile"))
		}
		m, data, err := client.Read(t.Context())
		if err != nil || m.name() != "finished" || string(m.Traffic.Body) != "3" || !bytes.Equal(data, want) {
			t.Errorf("%v %+v, %d bytes, want %d", err, m.Traffic, len(data), len(want))
		}
		if m := received(t, client); m.name() != "started" {
			t.Errorf("%s after the bytes", m.name())
		}
		for range 10 {
			if m := received(t, loadServer); m.name() != "meanwhile" {
				t.Errorf("%s", m.name())
			}
		}
	})
}

func TestCloseEndsTheOtherEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, _ := pair(t)
		if err := client.Close(); err != nil || !errors.Is(client.Err(), ErrClosed) {
			t.Errorf("%v, %v", err, client.Err())
		}
		ended(t, loadServer, time.Second)
		if !errors.Is(loadServer.Err(), ErrClosed) {
			t.Errorf("loadserver: %v, want closed", loadServer.Err())
		}
		if err := client.Write(message("x")); !errors.Is(err, ErrClosed) {
			t.Errorf("writing after the end: %v", err)
		}
		if _, _, err := loadServer.Read(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("reading after the end: %v", err)
		}
		if client.Close() != nil || loadServer.Close() != nil {
			t.Error("closing again is an error")
		}
	})
}

func TestRefusalEndsTheSessionAndReachesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		l.slow(1, 50*time.Millisecond)
		want := &Refusal{Reason: Busy, Detail: "another run", RetryAfter: 20 * time.Second}
		begin := time.Now()
		if err := loadServer.Refuse(want); err != nil || time.Since(begin) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ended(t, client, time.Second)
		var got *Refusal
		if !errors.As(client.Err(), &got) || !cmp.Equal(got, want) {
			t.Errorf("client: %v", client.Err())
		}
	})
}

func TestRefuseDoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, inner := net.Pipe() // no reader
		c := newConn(inner, nil, false)
		begin := time.Now()
		if err := c.Refuse(&Refusal{Reason: ShuttingDown}); err == nil {
			t.Error("Refuse returned no error, want one: no peer reads")
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("Refuse took %v", took)
		}
	})
}

func TestPeerThatDoesNotReadTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, inner := net.Pipe()
		c := newConn(inner, nil, false)
		var peer sync.WaitGroup
		defer peer.Wait()
		defer c.Close()
		peer.Go(func() { // it sends and never reads
			for {
				b, _ := encode(&Message{Traffic: &TrafficMessage{Name: "x"}})
				if _, err := end.Write(frame(b, 0)); err != nil {
					return
				}
				time.Sleep(time.Second) // simulated time (synctest)
			}
		})
		begin := time.Now()
		err := c.SendMessage("finished", nil, make([]byte, 1<<20))
		if took := time.Since(begin); took > frameTime || !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "the peer does not read") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestFrameThatTricklesEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := raw(t, false)
		go io.Copy(io.Discard, peer)
		whole := frame(bytes.Repeat([]byte{' '}, 1000), 0)
		begin := time.Now()
		for i := range whole {
			if _, err := peer.Write(whole[i : i+1]); err != nil {
				break
			}
			time.Sleep(500 * time.Millisecond) // simulated time (synctest)
		}
		ended(t, c, time.Second)
		if took := time.Since(begin); took > frameTime+time.Second || !errors.Is(c.Err(), ErrProtocol) {
			t.Errorf("after %v: %v", took, c.Err())
		}
	})
}

func TestProtocolViolationsEndTheConnection(t *testing.T) {
	in := func(message, bytes string) string { return string(frame([]byte(message), len(bytes))) + bytes }
	for _, c := range []struct {
		name, bytes, want string
		client            bool // the end under test
	}{
		{"random bytes", "\x8f\x02\x33\x44random", "message of 2399286084 bytes with 1918987876 bytes of data; want 1 to 65536 and at most 0", false},
		{"oversized", "\x7f\xff\xff\xff\x00\x00\x00\x00", "message of 2147483647 bytes with 0 bytes of data; want 1 to 65536", false},
		{"4 GiB of bytes", "\x00\x00\x00\x01\xff\xff\xff\xff", "with 4294967295 bytes of data; want 1 to 65536 and at most ", true},
		{"no JSON", in("hello", ""), "invalid character 'h' looking for beginning of value", false},
		{"a client's message to a client", in(`{"open":{"traffic":"x","run":"","bytes":1,"duration_ns":1}}`, ""), "open from the wrong end", true},
		{"a load server's message to a load server", in(`{"opened":{}}`, ""), "opened from the wrong end", false},
		{"a refusal to a load server", in(`{"refusal":{"reason":"busy"}}`, ""), "refusal from the wrong end", false},
		{"bytes to a load server", in(`{"traffic":{"name":"x"}}`, "x"), "with 1 bytes of data; want 1 to 65536 and at most 0", false},
		{"data without a message", in("", "x"), "message of 0 bytes with 1 bytes of data", true},
		{"data of a message that has none", in(`{"opened":{}}`, "x"), "opened has 1 bytes of data, want none", true},
		{"bytes that were not announced", in(`{"traffic":{"name":"x"}}`, "x") + "y" + in(`{"traffic":{"name":"x"}}`, ""), "message of ", true},
		{"a flood", strings.Repeat(in(`{"traffic":{"name":"x"}}`, ""), inboxMessages+1), "more than 64 unread messages", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, peer := raw(t, c.client)
			go io.Copy(io.Discard, peer)
			go io.WriteString(peer, c.bytes)
			took := ended(t, conn, time.Second)
			if took > 0 && c.client || took > lastWriteTimeout || !errors.Is(conn.Err(), ErrProtocol) || !strings.Contains(conn.Err().Error(), c.want) {
				t.Errorf("%s: after %v:\n got %v\nwant %s", c.name, took, conn.Err(), c.want)
			}
		})
	}
}

// TestClientLearnsWhichMessageWasInvalid: such as a client of another version, or of another maker.
func TestClientLearnsWhichMessageWasInvalid(t *testing.T) {
	for message, want := range map[string]string{
		`{"open":{"traffic":"udp","future":1}}`:  `unknown field "future"`,
		`{"open":{"bytes":9223372036854775808}}`: "got the number 9223372036854775808",
		`{"welcome":{"limits":{}}}`:              "welcome from the wrong end",
		"{}":                                     "message has 0 parts, want exactly one",
	} {
		synctest.Test(t, func(t *testing.T) {
			client, loadServer, _ := pair(t)
			go client.nc.Write(frame([]byte(message), 0))
			ended(t, client, time.Second)
			refusal, ok := errors.AsType[*Refusal](client.Err())
			if !ok || refusal.Reason != BadRequest || !strings.Contains(refusal.Detail, want) {
				t.Errorf("%s: the client has %v", message, client.Err())
			}
			if ended(t, loadServer, time.Second); !errors.Is(loadServer.Err(), ErrProtocol) {
				t.Errorf("%s: the load server has %v", message, loadServer.Err())
			}
		})
	}
}

func TestTruncatedFrameIsALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := raw(t, true)
		go io.Copy(io.Discard, peer)
		io.WriteString(peer, "\x00\x00\x00\x09\x00\x00\x00\x00{")
		time.Sleep(time.Millisecond) // simulated time (synctest)
		peer.Close()
		ended(t, c, time.Second)
		if !errors.Is(c.Err(), ErrLost) || !errors.Is(c.Err(), io.ErrUnexpectedEOF) {
			t.Error(c.Err())
		}
	})
}

func TestMessagesBeforeTheEndAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, loadServer, l := pair(t)
		names := []string{"one", "two", "three"}
		for _, name := range names {
			if err := client.Write(message(name)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		l.cut()
		ended(t, loadServer, time.Second)
		for _, name := range names {
			if m := received(t, loadServer); m.name() != name {
				t.Errorf("%s, want %s", m.name(), name)
			}
		}
		if _, _, err := loadServer.Read(t.Context()); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

func TestIdleConnectionSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := raw(t, true)
		said := 0
		go func() {
			n, _ := io.Copy(io.Discard, peer)
			said = int(n)
		}()
		b, _ := encode(&Message{Traffic: &TrafficMessage{Name: "x"}})
		for range 30 { // a peer that sends messages that have no reply
			if _, err := peer.Write(frame(b, 0)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // simulated time (synctest)
		}
		c.end(ErrLost)
		synctest.Wait()
		if said > 0 {
			t.Errorf("%d bytes were sent, want none", said)
		}
	})
}
