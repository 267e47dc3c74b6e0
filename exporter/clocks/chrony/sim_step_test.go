package chrony

import (
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/clocksim"
)

// stepTestbed is a path between two hosts whose clocks have settled, local or remote of which
// is stepped after 20 minutes.
func stepTestbed(seed uint64, local bool, size time.Duration, source func() clocksim.Source) *simPath {
	w := newSimulation(seed)
	p := &simPath{
		simulation: w,
		local:      newSimHost(w, quartz(50e-6), 0, clocksim.Config{Source: source()}),
		remote:     newSimHost(w, quartz(-12e-6), 0, clocksim.Config{Source: source()}),
		delays: func(time.Duration) (time.Duration, time.Duration) {
			return 2 * time.Millisecond, 3 * time.Millisecond
		},
	}
	host := p.local
	if !local {
		host = p.remote
	}
	at := minutes(20) + time.Duration(w.random.Int64N(int64(time.Minute)))
	p.play(at+minutes(10), []scene{{at: 0, name: "settling"}, {at: at, name: "stepped", do: func() { host.step(size) }}})
	return p
}

func lanServer() clocksim.Source {
	return &clocksim.NTP{
		Poll: 5, Forward: 2 * time.Millisecond, Back: time.Millisecond, Jitter: 200 * time.Microsecond, RootDispersion: 20e-6,
	}
}

func TestNothingIsValidFromAStepUntilChronydHasMeasuredAgain(t *testing.T) {
	for _, local := range []bool{true, false} {
		for _, size := range []time.Duration{time.Second, -time.Second} {
			for seed := range uint64(3) {
				p := stepTestbed(seed, local, size, lanServer)
				stepped := p.phases[1]
				reason := sample.LocalStepped
				if !local {
					reason = sample.RemoteUnsynchronized // S=0; our reflector's Receipt says why
				}
				if stepped.forbidden > 0 || stepped.reasons[reason] < 2 {
					t.Errorf("seed %d, near %v, %v: %d delays valid before chronyd's next sample; %v",
						seed, local, size, stepped.forbidden, stepped.reasons)
				}
			}
		}
	}
}

// The first update after a step need not see it, or not whole; see settler.
func TestBoundCoversTheTruthAfterAStepByHand(t *testing.T) {
	sources := map[string]func() clocksim.Source{
		"server":          lanServer,
		"pulse":           func() clocksim.Source { return serialPulse(nil, nil) },
		"pulse every 4 s": func() clocksim.Source { s := serialPulse(nil, nil); s.Poll = 2; return s },
	}
	for name, source := range sources {
		for i, size := range []time.Duration{time.Second, -time.Second, 10 * time.Millisecond, 300 * time.Microsecond} {
			for seed := range uint64(2) {
				stepped := stepTestbed(seed, i%2 == 0, size, source).phases[1]
				if stepped.coverage() < 0.999 || stepped.valid < stepped.delays/3 {
					t.Errorf("%s, step of %v, seed %d: %d of %d valid, coverage %.4f: %v",
						name, size, seed, stepped.valid, stepped.delays, stepped.coverage(), stepped.missed)
				}
			}
		}
	}
}
