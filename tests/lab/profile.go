package lab

import (
	"embed"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/bottleneck"
)

//go:embed profiles/*.yaml
var profileFiles embed.FS

// Profile is an emulated path. The zero value impairs nothing.
type Profile struct {
	// Name is for messages and reports.
	Name string
	// Forward is from client to server (the papers' uplink), Reverse back.
	Forward, Reverse Link
}

// MeanRate is Rate, or what the trace lets through in the mean, in bits a second; 0: unlimited.
func (l Link) MeanRate() int64 {
	if n := len(l.Trace); n > 0 {
		return int64(n) * bottleneck.Opportunity * 8 * 1000 / int64(l.Trace[n-1])
	}
	return l.Rate
}

// Link is one direction of a path. The zero value passes every packet at once.
type Link struct {
	// Rate in bits of IP packets per second; 0 is unlimited (no queue then), unless there is a Trace.
	Rate int64
	// Delay is what a lone packet sees. Default 0.
	Delay time.Duration
	// Jitter is the width of a uniform delay on top of Delay. Default 0.
	Jitter time.Duration
	// Trace replaces Rate: the milliseconds in which 1504 bytes may leave, again and again.
	Trace []uint32
	// Slot: packets leave at its multiples only.
	Slot time.Duration
	// Bucket bytes leave at Peak, or at once, after the link stood idle. Police drops what finds
	// no tokens.
	Bucket int
	Peak   int64
	Police bool
	// Queue is the limit in IP bytes; 0 stands for DefaultQueue, and for none if there is
	// another limit: QueuePackets, or QueueTime, after which a packet is discarded.
	Queue        int
	QueuePackets int
	QueueTime    time.Duration
	// Discipline is what the queue does when it is full, or before. Default TailDrop.
	Discipline bottleneck.Discipline
	// SecondRate and SecondQueue are those of a second bottleneck behind it. Default none.
	SecondRate  int64
	SecondQueue int
	// Others send at this rate through it. Default 0.
	Others int64
	// Retransmit is the probability that a packet takes RetransmitDelay more, and again; those
	// behind it wait for it.
	Retransmit      float64
	RetransmitDelay time.Duration
	// Grow is added to Delay from GrowAfter on, and for Outage from OutageAfter on nothing
	// arrives, both counted from the first packet.
	Grow, GrowAfter, Outage, OutageAfter time.Duration
	// Loss, Duplicate, Reorder and Corrupt are probabilities, 0..1.
	Loss, Duplicate, Reorder, Corrupt float64
	// Mark is the probability that a packet of an ECN-capable transport gets the mark CE (RFC 3168
	// section 5), whatever the queue.
	Mark float64
	// LossBurst is the mean run of consecutive losses in packets (a Gilbert
	// model with the overall ratio Loss); 0: every loss is independent.
	LossBurst float64
	// Checksum says what becomes of the UDP checksum of a corrupted packet.
	Checksum ChecksumMode
}

// ChecksumMode is the treatment of a corrupted packet's UDP checksum.
type ChecksumMode uint8

const (
	// RepairChecksum makes the checksum fit the corruption: the socket gets it.
	RepairChecksum ChecksumMode = iota
	// KeepChecksum leaves it wrong: the receiving kernel drops the packet and
	// counts it in InCsumErrors.
	KeepChecksum
)

const (
	// DefaultQueue is the queue in IP bytes where a profile names none.
	DefaultQueue = 256_000
	// MTU of every interface, in IP bytes; a queue holds at least one such packet.
	MTU = 1500
	// HoldTimeout is the longest time that reordering holds a packet back.
	HoldTimeout = 200 * time.Millisecond
	// maxDelay bounds delay and jitter; the papers saw round trips of 34 s.
	maxDelay = 10 * time.Minute
)

// queue is the effective limit in bytes, 0 if there is none.
func (l Link) queue() int {
	if l.Queue == 0 && l.QueuePackets == 0 && l.QueueTime == 0 {
		return DefaultQueue
	}
	return l.Queue
}

// bottleneck is the part of the link with a queue.
func (l Link) bottleneck() bottleneck.Config {
	c := bottleneck.Config{
		Rate: l.Rate, Trace: l.Trace, Slot: l.Slot, Bucket: l.Bucket, Peak: l.Peak, Police: l.Police,
		Discipline: l.Discipline, Queue: l.queue(), QueuePackets: l.QueuePackets, QueueTime: l.QueueTime, Others: l.Others,
	}
	if l.SecondRate > 0 {
		c.Second = &bottleneck.Config{Rate: l.SecondRate, Queue: Link{Queue: l.SecondQueue}.queue()}
	}
	return c
}

// exit is when a packet that leaves the queue at departure is to leave the link, if the first one
// entered at first and it is delayed by so much more than others.
func (l *Link) exit(departure, first instant.Time, more time.Duration) instant.Time {
	due := departure.Add(l.Delay + more)
	if since := departure.Sub(first); l.Grow > 0 && since >= l.GrowAfter {
		due = due.Add(l.Grow)
	}
	if since := due.Sub(first); l.Outage > 0 && since >= l.OutageAfter {
		due = max(due, first.Add(l.OutageAfter+l.Outage))
	}
	return due
}

// LoadProfile returns the built-in profile of that name (ProfileNames), or reads a file if the
// name has a slash or ends in .yaml.
func LoadProfile(name string) (Profile, error) {
	if strings.Contains(name, "/") || strings.HasSuffix(name, ".yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			return Profile{}, fmt.Errorf("lab: profile: %w", err)
		}
		return ParseProfile(name, text)
	}
	file := path.Join("profiles", name+".yaml")
	text, err := profileFiles.ReadFile(file)
	if err != nil {
		return Profile{}, fmt.Errorf("lab: no profile %q, want one of %s or the path of a .yaml file",
			name, strings.Join(ProfileNames(), ", "))
	}
	return ParseProfile(file, text)
}

// ProfileNames lists the built-in profiles in alphabetical order.
func ProfileNames() []string {
	entries, _ := profileFiles.ReadDir("profiles") // embedded: cannot fail
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// check finds values that no link can have; what it returns names the key.
func (l Link) check() (key string, err error) {
	probabilities := []struct {
		key   string
		value float64
	}{{"loss", l.Loss}, {"retransmit", l.Retransmit}, {"duplicate", l.Duplicate}, {"reorder", l.Reorder}, {"corrupt", l.Corrupt}, {"mark", l.Mark}}
	for _, p := range probabilities {
		if !(p.value >= 0 && p.value <= 1) {
			return p.key, fmt.Errorf("%v is no probability, want 0%% to 100%%", p.value)
		}
	}
	if err := l.bottleneck().Check(); err != nil && l.Rate >= 0 {
		return "rate", err
	}
	switch {
	case l.Rate < 0:
		return "rate", fmt.Errorf("%d bit/s is negative", l.Rate)
	case l.Delay < 0 || l.Delay > maxDelay:
		return "delay", fmt.Errorf("%v is out of range, want 0 to %v", l.Delay, maxDelay)
	case l.Jitter < 0 || l.Jitter > maxDelay:
		return "jitter", fmt.Errorf("%v is out of range, want 0 to %v", l.Jitter, maxDelay)
	case l.queue() > 0 && l.queue() < MTU:
		return "queue", fmt.Errorf("%d bytes hold not even one packet, want at least %dB", l.queue(), MTU)
	case l.Checksum > KeepChecksum:
		return "corrupt_checksum", fmt.Errorf("%d is no mode, want repair or keep", l.Checksum)
	case l.LossBurst != 0 && !(l.LossBurst >= 1 && l.LossBurst <= 1e6):
		return "loss_burst", fmt.Errorf("%v is out of range, want a mean run of 1 to 1000000 packets", l.LossBurst)
	case l.LossBurst != 0 && l.Loss > l.LossBurst*(1-l.Loss):
		return "loss_burst", fmt.Errorf("runs of %v cannot lose %v %% of the packets, want at least %.3g",
			l.LossBurst, 100*l.Loss, l.Loss/(1-l.Loss))
	}
	return "", nil
}

// check is Link.check for both directions.
func (p Profile) check() error {
	for _, d := range []struct {
		name string
		link Link
	}{{"forward", p.Forward}, {"reverse", p.Reverse}} {
		if key, err := d.link.check(); err != nil {
			return fmt.Errorf("lab: profile %q: %s.%s: %w", p.Name, d.name, key, err)
		}
	}
	return nil
}
