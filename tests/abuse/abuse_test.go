// Package abuse attacks reflectors, senders, load servers and agents with invalid, replayed, spoofed and excess
// traffic.
//
// Every packet must be counted with the expected result, memory and sessions must stay within their limits, and known
// peers must be served throughout.
package abuse

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/testseed"
)

// packets is the length of each flood.
const packets = 100_000

func TestTruncatedPacketsAreCountedAsShort(t *testing.T) {
	s := start(t, reflector.Options{})
	rng := seeded(t)
	buffer := make([]byte, 40)
	s.flood(func(int) []byte {
		for i := range buffer {
			buffer[i] = byte(rng.Uint32())
		}
		return buffer[:rng.IntN(41)]
	}, 100)
	s.expect(map[reflector.Result]uint64{reflector.Short: packets})
}

func TestTruncatedAuthenticatedPacketsAreCountedAsShort(t *testing.T) {
	key := newKey("right")
	s := start(t, reflector.Options{Keys: []*stampfmt.Key{key}, RequireKey: true})
	whole := request(1, 1, key)
	rng := seeded(t)
	s.flood(func(int) []byte { return whole[:rng.IntN(stampfmt.AuthenticatedBytes)] }, 100)
	s.expect(map[reflector.Result]uint64{reflector.Short: packets})
}

func TestOversizedPacketsAreCounted(t *testing.T) {
	s := start(t, reflector.Options{})
	rng := seeded(t)
	buffer := make([]byte, 12_000)
	copy(buffer, request(1, 1, nil))
	s.flood(func(int) []byte {
		return buffer[:reflector.MaxPacketBytes+1+rng.IntN(len(buffer)-reflector.MaxPacketBytes-1)]
	}, 10)
	s.expect(map[reflector.Result]uint64{reflector.Oversized: packets})
}

func TestWrongHMACIsCountedAndItsCostIsBounded(t *testing.T) {
	right, wrong := newKey("right"), newKey("wrong")
	s := start(t, reflector.Options{Keys: []*stampfmt.Key{right}, RequireKey: true})
	bad := request(1, 99, wrong)
	s.flood(func(int) []byte { return bad }, 100)
	got := s.gained()
	if sum := got[reflector.BadHMAC] + got[reflector.HMACLimited]; sum != packets {
		t.Errorf("bad_hmac %d and hmac_limited %d, want a sum of %d; all results: %v",
			got[reflector.BadHMAC], got[reflector.HMACLimited], packets, got)
	}
	if got[reflector.BadHMAC] == 0 || got[reflector.HMACLimited] == 0 {
		t.Errorf("bad_hmac %d, hmac_limited %d, want both above 0", got[reflector.BadHMAC], got[reflector.HMACLimited])
	}
}

func TestReplayedPacketsAreDuplicatesInOneSession(t *testing.T) {
	s := start(t, reflector.Options{})
	recorded := request(1, 99, nil)
	s.flood(func(int) []byte { return recorded }, 100)
	s.expect(map[reflector.Result]uint64{reflector.Answered: packets})
	if n := s.r.Stats().Sessions; n != 2 {
		t.Errorf("%d sessions, want 2: the known peer's and the replayed one", n)
	}
}

func TestReplayAboveTheRateLimitIsRefused(t *testing.T) {
	s := start(t, reflector.Options{RatePackets: 5000, RateBurst: 4000})
	recorded := request(1, 99, nil)
	s.attacker.from(netip.MustParseAddr("127.9.9.9"))
	begin := time.Now()
	s.flood(func(int) []byte { return recorded }, 100)
	got := s.gained()
	most := uint64(4000 + 5000*time.Since(begin).Seconds() + 1)
	if got[reflector.Answered] < 4000 || got[reflector.Answered] > most || got[reflector.Answered]+got[reflector.RateLimited] != packets {
		t.Errorf("answered %d, rate_limited %d of %d; want 4000 to %d answered", got[reflector.Answered], got[reflector.RateLimited], packets, most)
	}
}

func TestSpoofedSourcesEvictOnlyEachOther(t *testing.T) {
	const bound = 1000
	s := start(t, reflector.Options{MaxSessions: bound, NewSessions: -1}) // that limit has its own tests
	rng := seeded(t)
	s.flood(func(i int) []byte {
		s.attacker.from(netip.AddrFrom4([4]byte{127, byte(1 + rng.IntN(200)), byte(rng.Uint32()), byte(1 + rng.IntN(250))}))
		return request(uint32(i), rng.Uint32()|1, nil)
	}, 100)
	s.expect(map[reflector.Result]uint64{reflector.Answered: packets})
	if n := s.r.Stats().Sessions; n > bound {
		t.Errorf("%d sessions, want at most %d", n, bound)
	}
	if s.known.epochs != 1 {
		t.Errorf("the known peer's session was evicted: it received %d epochs, want 1", s.known.epochs)
	}
}

func TestSpoofedReflectorsGetNoReply(t *testing.T) {
	s := start(t, reflector.Options{})
	reply := s.known.last
	s.flood(func(int) []byte { return reply }, 100)
	s.expect(map[reflector.Result]uint64{reflector.Loop: packets})
}

func TestRandomPacketsAreAllCounted(t *testing.T) {
	key := newKey("right")
	for name, o := range map[string]reflector.Options{
		"without keys": {}, "with a key": {Keys: []*stampfmt.Key{key}},
	} {
		t.Run(name, func(t *testing.T) {
			o.MaxSessions = 1000
			s := start(t, o)
			rng := seeded(t)
			buffer := make([]byte, 1500)
			model := request(7, 7, nil)
			s.flood(func(i int) []byte {
				n := rng.IntN(len(buffer))
				for at := 0; at < n; at += 4 {
					v := rng.Uint32()
					for j := range min(4, n-at) {
						buffer[at+j] = byte(v >> (8 * j))
					}
				}
				if i%2 == 0 { // half of them start like a request
					copy(buffer[:n], model[:rng.IntN(len(model))])
				}
				return buffer[:n]
			}, 100)
			var sum uint64
			for _, n := range s.gained() {
				sum += n
			}
			if sum != packets {
				t.Errorf("counted %d packets, sent %d", sum, packets)
			}
			if n := s.r.Stats().Sessions; n > 1000 {
				t.Errorf("%d sessions, want at most 1000", n)
			}
		})
	}
}

func seeded(t *testing.T) *rand.Rand {
	seed := testseed.Of(t)
	return rand.New(rand.NewPCG(seed, 0))
}
