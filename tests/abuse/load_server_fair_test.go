package abuse

import (
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/remoteend"
)

// another adds a token to the load server.
func (f *remoteEnd) another(name string, limits loadcontrol.Limits) (text string) {
	f.t.Helper()
	token, text, err := loadserver.NewToken(name, limits)
	if err == nil {
		err = loadserver.AppendToken(f.o.TokensFile, token)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

func openOneByte(t *testing.T, c *loadcontrol.Client) error {
	_, err := udptraffic.Open(t.Context(), c, loadcontrol.Open{Test: "train", Run: "fair", Bytes: 1, Duration: time.Minute})
	return err
}

// served counts the sessions of two tokens, from the first attempt of the second on.
type served struct {
	mu              sync.Mutex
	greedy, patient int
}

func (s *served) add(n *int) (greedy, patient int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
	return s.greedy, s.patient
}

// reopens opens sessions of one byte at the maximum rate, and closes each only when it has the connection for the next
// one.
func (f *remoteEnd) reopens(token string, stop <-chan struct{}, opened func()) {
	var before *loadcontrol.Client
	leave := func() {
		if before != nil {
			before.Close()
			before = nil
		}
	}
	defer leave()
	for {
		select {
		case <-stop:
			return
		case <-f.t.Context().Done():
			return
		default:
		}
		c, err := f.dial(token)
		leave()
		if err != nil {
			continue
		}
		if openOneByte(f.t, c) != nil {
			c.Close()
			continue
		}
		opened()
		before = c
	}
}

func TestTokenThatReopensAtOnceDoesNotStarveAnother(t *testing.T) {
	const wanted, most = 20, 200
	f := startLoadServer(t, loadcontrol.Limits{})
	other := f.another("other", loadcontrol.Limits{})
	var s served
	stop := make(chan struct{})
	var greedy sync.WaitGroup
	defer greedy.Wait()
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	for range 4 {
		greedy.Go(func() {
			f.reopens(f.token, stop, func() {
				begin()
				if n, _ := s.add(&s.greedy); n >= most {
					end()
				}
			})
		})
	}
	<-begun
	s.mu.Lock()
	s.greedy = 0
	s.mu.Unlock()
	tries := 0
	for patient := 0; patient < wanted; tries++ {
		select {
		case <-stop:
			t.Fatalf("the token that reopens at once had %d sessions, the other %d in %d attempts", most, patient, tries)
		default:
		}
		c, err := f.dial(other)
		if err == nil {
			if err = openOneByte(t, c); err == nil {
				_, patient = s.add(&s.patient)
			}
			c.Close()
		}
		if err == nil {
			continue
		}
		// too_many: the load server has not yet seen that this token's last sessions are closed.
		if why := remoteend.Refusal(t, err).Reason; why != loadcontrol.Busy && why != loadcontrol.TooMany {
			t.Fatalf("attempt %d: %v", tries, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("the token that reopens at once had %d sessions, the other %d in %d attempts", s.greedy, s.patient, tries)
	if s.greedy > s.patient+s.patient/4+2 {
		t.Errorf("the token that reopens at once had %d of %d sessions, want half", s.greedy, s.greedy+s.patient)
	}
}

func TestSessionsOfOneTokenDoNotRefuseAnother(t *testing.T) {
	for name, limits := range map[string]loadcontrol.Limits{
		"without a limit":                {},
		"with the limit of all sessions": {Sessions: loadserver.DefaultMaxSessions},
	} {
		t.Run(name, func(t *testing.T) {
			f := startLoadServer(t, limits)
			other := f.another("other", loadcontrol.Limits{})
			var first *loadcontrol.Client
			granted := 0
			for range loadserver.DefaultMaxSessions {
				c, err := f.dial(f.token)
				if err != nil {
					continue
				}
				defer c.Close()
				if granted++; granted == 1 {
					first = c
					if err := openOneByte(t, c); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := limits.Sessions
			if want == 0 {
				want = 2
			}
			if granted != want {
				t.Errorf("granted %d of %d sessions, want %d", granted, loadserver.DefaultMaxSessions, want)
			}
			for range loadserver.DefaultTokenSessions {
				c, err := f.dial(other)
				if err != nil {
					t.Fatalf("another token, with %d sessions of the first: %v", granted, err)
				}
				defer c.Close()
			}
			select {
			case <-first.Done():
				t.Errorf("the session that has the link was closed: %v", first.Err())
			default:
			}
		})
	}
}
