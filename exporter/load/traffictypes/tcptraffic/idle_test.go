package tcptraffic

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
)

// idleHost is a host that notes when its session ends.
type idleHost struct {
	traffic.Host
	ended chan error
}

func (h idleHost) End(why error) {
	select {
	case h.ended <- why:
	default: // an earlier call has ended it
	}
}

func (idleHost) ConsumeRate(sample.Direction, time.Duration, traffic.Consume) *loadcontrol.Refusal {
	return nil
}
func (idleHost) SendMessage(string, any, []byte) error { return nil }
func (idleHost) Take(int64) *loadcontrol.Refusal       { return nil }

// A client that hangs, between transfers or during one, holds the link no longer than ten seconds after its last message or
// payload, whatever the idle timeout of its transfer.
func TestSilentClientFreesTheLinkAfterTenSeconds(t *testing.T) {
	for what, alive := range map[string]func(t *testing.T, s *serving){
		"nothing": func(*testing.T, *serving) {},
		"messages": func(t *testing.T, s *serving) {
			for range 30 {
				if refusal := s.Handle(&loadcontrol.TrafficMessage{Name: sayAlive}); refusal != nil {
					t.Fatal(refusal)
				}
				time.Sleep(aliveInterval) // simulated time (synctest)
			}
		},
		"payload": func(t *testing.T, s *serving) {
			for range 10 {
				if err := s.permitting(sample.Forward)(t.Context(), 1000, 1040); err != nil {
					t.Fatal(err)
				}
				time.Sleep(9 * time.Second) // simulated time (synctest)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := idleHost{ended: make(chan error, 1)}
				opened, _, _ := remote{}.Open(h, nil)
				s := opened.(*serving)
				defer s.Close()
				alive(t, s)
				select {
				case why := <-h.ended:
					t.Fatalf("ended although the client was alive: %v", why)
				default:
				}
				last := s.idleTime()
				begin := time.Now()
				why := <-h.ended
				if took := last + time.Since(begin); !errors.Is(why, traffic.ErrIdleTimeout) || took < 10*time.Second || took > 10*time.Second+2*traffic.WatchInterval {
					t.Errorf("%v after %v, want the idle timeout after 10s", why, took)
				}
			})
		})
	}
}

// A client tells a load server that hangs from one that has nothing to say. Before its first message it may not expect any: the UDP
// part of a mixed session comes first.
func TestLoadServerSendsAliveAfterTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := talkingHost{said: make(chan string, 100)}
		opened, _, _ := remote{}.Open(h, nil)
		time.Sleep(3 * aliveInterval) // simulated time (synctest)
		if n := len(h.said); n > 0 {
			t.Errorf("%d messages before the client's first", n)
		}
		if refusal := opened.(*serving).Handle(&loadcontrol.TrafficMessage{Name: sayAlive}); refusal != nil {
			t.Fatal(refusal)
		}
		time.Sleep(5*aliveInterval - time.Millisecond) // simulated time (synctest)
		opened.(*serving).Close()
		if n := len(h.said); n != 5 {
			t.Errorf("%d messages in 10 s, want 5", n)
		}
		for range len(h.said) {
			if name := <-h.said; name != sayAlive {
				t.Errorf("message %q", name)
			}
		}
	})
}

// talkingHost is a host that notes the messages to the client.
type talkingHost struct {
	traffic.Host
	said chan string
}

func (talkingHost) End(error) {}

func (h talkingHost) SendMessage(name string, _ any, _ []byte) error {
	h.said <- name
	return nil
}

// A transfer that shall survive a longer outage keeps the session for that time, and no longer.
func TestTransferWithALongOutageKeepsItsSessionForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := idleHost{ended: make(chan error, 1)}
		opened, _, _ := remote{}.Open(h, nil)
		s := opened.(*serving)
		defer s.Close()
		x := &serve{}
		x.Plan.Outage = time.Minute
		s.mu.Lock()
		s.active[1] = x
		s.mu.Unlock()
		begin := time.Now()
		<-h.ended
		if took := time.Since(begin); took < time.Minute || took > time.Minute+2*traffic.WatchInterval {
			t.Errorf("ended after %v, want a minute", took)
		}
	})
}

// What the load server sends is no sign of life of the client.
func TestSentPayloadDoesNotKeepASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := idleHost{ended: make(chan error, 1)}
		opened, _, _ := remote{}.Open(h, nil)
		s := opened.(*serving)
		defer s.Close()
		for range 11 {
			if err := s.permitting(sample.Reverse)(t.Context(), 1000, 1040); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // simulated time (synctest)
		}
		if why := <-h.ended; !errors.Is(why, traffic.ErrIdleTimeout) {
			t.Error(why)
		}
	})
}
