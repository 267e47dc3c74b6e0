package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// dial connects to a played responder.
func dial(t *testing.T, o ClientOptions) *Client {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// hear is said for a played responder, whose end may be what is tested.
func hear(c *Conn) Message {
	m, _, err := c.Read(context.Background())
	if err != nil {
		return Message{}
	}
	return m
}

// tell says messages; the end of the connection is what is tested.
func tell(c *Conn, all ...Message) {
	for _, m := range all {
		_ = c.Write(m)
	}
}

// finished ends the forward transfer 1.
func finished() Message { return Message{Finished: &Finished{ID: 1, Received: &stream.Received{}}} }

func TestWholeConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := bytes.Repeat([]byte("records "), 50_000)
		cookie := []byte{9, 8, 7}
		c := converse(t, func(c *Conn) {
			if m := hear(c); m.Open == nil || m.Open.Kind != Saturate {
				t.Errorf("%s in place of open", m.name())
			}
			tell(c, Message{Opened: &Opened{Session: 7, Port: 99}})
			if m := hear(c); m.Prove == nil || !bytes.Equal(m.Prove.Cookie, cookie) {
				t.Errorf("%s in place of prove", m.name())
			}
			tell(c, Message{Proved: &Proved{Address: "127.0.0.1:5"}})
			if m := hear(c); m.Transfer == nil || m.Transfer.ID != 1 || m.Transfer.Direction != sample.Forward {
				t.Errorf("%s in place of the forward transfer", m.name())
			}
			tell(c, Message{Started: &Started{ID: 1}})
			if m := hear(c); m.Sent == nil || m.Sent.Packets != 10 {
				t.Errorf("%s in place of sent", m.name())
			}
			if err := c.WriteFinished(Finished{ID: 1, Received: &stream.Received{Dropped: 2}}, records); err != nil {
				t.Error(err)
			}
			if m := hear(c); m.Transfer == nil || m.Transfer.Direction != sample.Reverse {
				t.Errorf("%s in place of the reverse transfer", m.name())
			}
			tell(c, Message{Started: &Started{ID: 2}})
			if m := hear(c); m.Cancel == nil || m.Cancel.ID != 2 {
				t.Errorf("%s in place of cancel", m.name())
			}
			tell(c, Message{Finished: &Finished{ID: 2, Sent: &stream.Sent{Planned: 10}, Error: "cancelled"}})
			if m := hear(c); m.Transfer == nil || m.Transfer.ID != 3 {
				t.Errorf("%s in place of the third transfer", m.name())
			}
			tell(c, Message{Refusal: &Refusal{ID: 3, Reason: DayLimit, RetryAfter: time.Hour}})
			<-c.Done()
			if !errors.Is(c.Err(), ErrClosed) {
				t.Error(c.Err())
			}
		})
		if c.Welcome().Limits.Sessions != 3 || c.Err() != nil {
			t.Errorf("%+v, %v", c.Welcome(), c.Err())
		}
		if opened, err := c.Open(t.Context(), Open{Version: Version, Kind: Saturate}); err != nil || opened.Port != 99 {
			t.Fatal(opened, err)
		}
		if err := c.Prove(t.Context(), cookie); err != nil {
			t.Fatal(err)
		}
		forward := Transfer{ID: 1, Direction: sample.Forward, Plan: plan(), Idle: time.Second}
		if started, err := c.Start(t.Context(), forward); err != nil || started.ID != 1 {
			t.Fatal(started, err)
		}
		if _, err := c.Start(t.Context(), forward); err == nil || !strings.Contains(err.Error(), "transfer 1 is under way") {
			t.Error(err)
		}
		if err := c.Sent(t.Context(), 1, 10); err != nil {
			t.Fatal(err)
		}
		end, got, err := c.Wait(t.Context(), 1)
		if err != nil || end.Received.Dropped != 2 || !bytes.Equal(got, records) {
			t.Fatal(end, len(got), err)
		}
		if _, err := c.Start(t.Context(), Transfer{ID: 2, Direction: sample.Reverse, Plan: plan(), Idle: time.Second}); err != nil {
			t.Fatal(err)
		}
		c.Cancel(2)
		if finished, got, err := c.Wait(t.Context(), 2); err != nil || finished.Error != "cancelled" || finished.Sent.Planned != 10 || got != nil {
			t.Fatal(finished, got, err)
		}
		var refusal *Refusal
		if _, err := c.Start(t.Context(), Transfer{ID: 3, Plan: plan(), Idle: time.Second}); !errors.As(err, &refusal) || refusal.Reason != DayLimit || c.Err() != nil {
			t.Fatal(err, c.Err())
		}
		if _, _, err := c.Wait(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "transfer 3 was not started") {
			t.Error(err)
		}
		if err := c.Close(); err != nil || !errors.Is(c.Err(), ErrClosed) {
			t.Error(err, c.Err())
		}
	})
}

func TestResponderThatAnswersOutOfTurnIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := Message{Started: &Started{ID: 1}}
		sent := Message{Finished: &Finished{ID: 1, Sent: &stream.Sent{}}}
		refusal := Message{Refusal: &Refusal{ID: 2, Reason: Busy}}
		for _, c := range []struct {
			name string
			says []Message
			want string
		}{
			{"a second welcome", []Message{{Welcome: &Welcome{Version: Version}}}, "welcome was not asked for"},
			{"opened", []Message{{Opened: &Opened{Session: 1, Port: 1}}}, "opened was not asked for"},
			{"proved", []Message{{Proved: &Proved{}}}, "proved was not asked for"},
			{"started twice", []Message{started, started}, "started: transfer 1 was not asked for"},
			{"another started", []Message{{Started: &Started{ID: 2}}}, "started: transfer 2 was not asked for"},
			{"finished first", []Message{finished()}, "finished: transfer 1 is not under way"},
			{"the wrong end", []Message{started, sent}, "the responder's end of a forward transfer is wanted"},
			{"a refusal of nothing", []Message{refusal}, "refusal: transfer 2 is not under way"},
		} {
			client := converse(t, func(conn *Conn) {
				hear(conn)
				tell(conn, c.says...)
				<-conn.Done()
			})
			_, _ = client.Start(t.Context(), Transfer{ID: 1, Direction: sample.Forward, Plan: plan(), Idle: time.Second})
			_, _, err := client.Wait(t.Context(), 1)
			<-client.Done()
			if !errors.Is(client.Err(), ErrProtocol) || !strings.Contains(client.Err().Error(), c.want) {
				t.Errorf("%s: %v\nwant %s", c.name, client.Err(), c.want)
			}
			if err == nil {
				t.Errorf("%s: and Wait has no error", c.name)
			}
		}
	})
}

func TestBusyResponderEndsTheSessionWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := Refusal{Reason: Busy, Detail: "another run", RetryAfter: 20 * time.Second}
		client := converse(t, func(c *Conn) {
			hear(c)
			if err := c.Refuse(&want); err != nil {
				t.Error(err)
			}
		})
		var got *Refusal
		if _, err := client.Open(t.Context(), Open{Version: Version}); !errors.As(err, &got) || *got != want {
			t.Error(err)
		}
		<-client.Done()
		if !errors.As(client.Err(), &got) || *got != want {
			t.Error(client.Err())
		}
	})
}

func TestEndOfTheConnectionEndsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := converse(t, func(c *Conn) {
			hear(c)
			tell(c, Message{Started: &Started{ID: 1}})
			hear(c) // sent; and then it dies
		})
		if _, err := client.Start(t.Context(), Transfer{ID: 1, Plan: plan(), Idle: time.Minute}); err != nil {
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
		if err := <-waits; !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if _, err := client.Open(t.Context(), Open{}); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if err := client.Prove(t.Context(), nil); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

func TestWhoWaitsCanLeaveAndComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		client := converse(t, func(c *Conn) {
			hear(c)
			tell(c, Message{Started: &Started{ID: 1}})
			<-goOn
			tell(c, finished())
			<-c.Done()
		})
		if _, err := client.Start(t.Context(), Transfer{ID: 1, Plan: plan(), Idle: time.Second}); err != nil {
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
	})
}

func TestManyTransfersOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const transfers = 100
		client := converse(t, func(c *Conn) {
			for range transfers {
				m := hear(c)
				if m.Transfer == nil {
					t.Errorf("%s in place of a transfer", m.name())
					return
				}
				tell(c, Message{Started: &Started{ID: m.Transfer.ID}})
				if err := c.WriteFinished(Finished{ID: m.Transfer.ID, Sent: &stream.Sent{}}, fmt.Append(nil, m.Transfer.ID)); err != nil {
					t.Error(err)
				}
			}
			<-c.Done()
		})
		for id := range uint16(transfers) {
			id++
			if _, err := client.Start(t.Context(), Transfer{ID: id, Direction: sample.Reverse, Plan: plan(), Idle: time.Second}); err != nil {
				t.Fatal(err)
			}
			if _, records, err := client.Wait(t.Context(), id); err != nil || string(records) != fmt.Sprint(id) {
				t.Fatal(string(records), err)
			}
		}
		if n := len(client.transfers); n > 0 {
			t.Errorf("%d transfers are still known", n)
		}
	})
}
