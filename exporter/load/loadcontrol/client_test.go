package loadcontrol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dial connects to a simulated load server.
func dial(t *testing.T, o ClientOptions) *Client {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// receive reads a message in a simulated load server; the end of the connection may be the tested event.
func receive(c *Conn) Message {
	m, _, err := c.Read(context.Background())
	if err != nil {
		return Message{}
	}
	return m
}

// send sends messages; the test checks the end of the connection.
func send(c *Conn, all ...Message) {
	for _, m := range all {
		_ = c.Write(m)
	}
}

func TestWholeConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := bytes.Repeat([]byte("records "), 50_000)
		c := converse(t, func(c *Conn) {
			if m := receive(c); m.Open == nil || m.Open.Traffic != "post" || m.Open.Test != "train" || m.Open.Bytes != 5 {
				t.Errorf("got %s, want open", m.name())
			}
			if err := c.SendOpened(map[string]int{"port": 99}); err != nil {
				t.Error(err)
			}
			if m := receive(c); m.name() != "ask" || string(m.Traffic.Body) != `{"n":1}` {
				t.Errorf("got %s, want ask", m.name())
			}
			if err := c.SendMessage("reply", "yes", data); err != nil {
				t.Error(err)
			}
			<-c.Done()
			if !errors.Is(c.Err(), ErrClosed) {
				t.Error(c.Err())
			}
		})
		if c.Welcome().Limits.Sessions != 3 || c.Err() != nil {
			t.Errorf("%+v, %v", c.Welcome(), c.Err())
		}
		came := make(chan []byte, 1)
		opened, err := c.Open(t.Context(), Open{Traffic: "post", Test: "train", Bytes: 5, Duration: time.Second}, func(s *TrafficMessage, data []byte) error {
			if s.Name != "reply" || string(s.Body) != `"yes"` {
				t.Errorf("%+v", s)
			}
			came <- data
			return nil
		})
		if err != nil || string(opened.Reply) != `{"port":99}` {
			t.Fatal(opened, err)
		}
		if err := c.SendMessage("ask", map[string]int{"n": 1}); err != nil {
			t.Fatal(err)
		}
		if got := <-came; !bytes.Equal(got, data) {
			t.Errorf("%d bytes, want %d", len(got), len(data))
		}
		if err := c.Close(); err != nil || !errors.Is(c.Err(), ErrClosed) {
			t.Error(err, c.Err())
		}
		if err := c.SendMessage("ask", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("SendMessage after the end: %v", err)
		}
	})
}

func TestUnexpectedMessageEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := Message{Opened: &Opened{}}
		for _, c := range []struct {
			name    string
			says    []Message
			deliver func(*TrafficMessage, []byte) error
			want    string
		}{
			{"a second welcome", []Message{{Welcome: &Welcome{}}}, nil, "unexpected welcome"},
			{"a message of a traffic that is not open", []Message{message("x")}, nil, "unexpected x"},
			{"opened twice", []Message{opened, opened}, func(*TrafficMessage, []byte) error { return nil }, "unexpected opened"},
			{"a message without a receiver", []Message{opened, message("x")}, nil, "unexpected x"},
			{"a message that the traffic rejects", []Message{opened, message("x")}, func(*TrafficMessage, []byte) error {
				return fmt.Errorf("%w: no x now", ErrProtocol)
			}, "no x now"},
		} {
			client := converse(t, func(conn *Conn) {
				receive(conn)
				send(conn, c.says...)
				<-conn.Done()
			})
			_, _ = client.Open(t.Context(), Open{}, c.deliver)
			<-client.Done()
			if !errors.Is(client.Err(), ErrProtocol) || !strings.Contains(client.Err().Error(), c.want) {
				t.Errorf("%s: %v\nwant %s", c.name, client.Err(), c.want)
			}
		}
	})
}

func TestBusyLoadServerEndsTheSessionWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := Refusal{Reason: Busy, Detail: "another run", RetryAfter: 20 * time.Second}
		client := converse(t, func(c *Conn) {
			receive(c)
			if err := c.Refuse(&want); err != nil {
				t.Error(err)
			}
		})
		var got *Refusal
		if _, err := client.Open(t.Context(), Open{}, nil); !errors.As(err, &got) || *got != want {
			t.Error(err)
		}
		<-client.Done()
		if !errors.As(client.Err(), &got) || *got != want {
			t.Error(client.Err())
		}
	})
}

func TestRefusalOfTheTrafficEndsTheSessionWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := Refusal{Reason: DayLimit, RetryAfter: time.Hour}
		client := converse(t, func(c *Conn) {
			receive(c)
			send(c, Message{Opened: &Opened{}})
			receive(c)
			if err := c.Refuse(&want); err != nil {
				t.Error(err)
			}
		})
		if _, err := client.Open(t.Context(), Open{}, nil); err != nil {
			t.Fatal(err)
		}
		if err := client.SendMessage("ask", nil); err != nil {
			t.Fatal(err)
		}
		<-client.Done()
		var got *Refusal
		if !errors.As(client.Err(), &got) || *got != want {
			t.Error(client.Err())
		}
	})
}

func TestEndOfTheConnectionEndsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := converse(t, func(c *Conn) { receive(c) }) // and then it closes
		if _, err := client.Open(t.Context(), Open{}, nil); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if err := client.SendMessage("x", nil); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

func TestOpenTimesOutAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := converse(t, func(c *Conn) { <-c.Done() })
		begin := time.Now()
		_, err := client.Open(t.Context(), Open{}, nil)
		if took := time.Since(begin); took != ReplyTimeout || err == nil || !strings.HasSuffix(err.Error(), "open: no reply within 10s") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
