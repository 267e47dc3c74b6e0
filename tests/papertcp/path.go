package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/vmlab"
	"oneway.example/tests/vmlab/record"
)

// profileName is the profile with the paper's path, its sources and its assumptions.
const profileName = "wimax-calgary"

// framing is the Ethernet header, which a queueing discipline counts and a rate of the profile does not.
const framing = 14

// segment is the payload of a full packet: 1500 bytes less the headers of IPv4 and of TCP with timestamps.
const segment = lab.MTU - 20 - 32

// shape makes a guest's outgoing packets those of a direction of the path. They come from a veth pair (package vmlab), so
// that a drop is no signal to the sending socket. The delay is before the rate and its queue: netem's own limit would
// count packets on their way. Segments leave one by one, as on a wire.
func shape(g *vmlab.Guest, l lab.Link) error {
	frames := func(bytes int64) int64 { return bytes * (lab.MTU + framing) / lab.MTU }
	for _, line := range []string{
		"ip link set dev eth0 gso_max_segs 1",
		fmt.Sprintf("tc qdisc add dev vec0 root handle 1: netem delay %dus limit 10000", l.Delay.Microseconds()),
		fmt.Sprintf("tc qdisc add dev vec0 parent 1:1 handle 2: tbf rate %dbit burst %d limit %d", frames(l.Rate), 2*(lab.MTU+framing), frames(int64(l.Queue))),
	} {
		if out, err := command(g, strings.Fields(line)...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

func command(g *vmlab.Guest, args ...string) (string, error) {
	return g.Do(record.Command{Do: record.Run, Args: args})
}

// counters are a guest's: of its end of the path, and of its kernel's TCP.
type counters struct {
	// sent and dropped packets of the queue, and sent bytes with Ethernet headers.
	sent, bytes, dropped int64
	// segments are all that TCP sent but those sent again, retransmitted those.
	segments, retransmitted int64
}

func (c counters) minus(o counters) counters {
	return counters{c.sent - o.sent, c.bytes - o.bytes, c.dropped - o.dropped, c.segments - o.segments, c.retransmitted - o.retransmitted}
}

func count(g *vmlab.Guest) (c counters, err error) {
	queue, err := command(g, "tc", "-s", "-j", "qdisc", "show", "dev", "vec0")
	if err != nil {
		return c, fmt.Errorf("%w: %s", err, queue)
	}
	if err := c.queue([]byte(queue)); err != nil {
		return c, err
	}
	snmp, err := command(g, "cat", "/proc/net/snmp")
	if err != nil {
		return c, err
	}
	return c, c.tcp(snmp)
}

// queue reads the output of tc.
func (c *counters) queue(text []byte) error {
	var all []struct {
		Kind    string `json:"kind"`
		Bytes   int64  `json:"bytes"`
		Packets int64  `json:"packets"`
		Drops   int64  `json:"drops"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("tc -s -j qdisc: %w", err)
	}
	for _, q := range all {
		if q.Kind == "tbf" {
			c.sent, c.bytes, c.dropped = q.Packets, q.Bytes, q.Drops
			return nil
		}
	}
	return fmt.Errorf("tc -s -j qdisc shows no tbf: %s", text)
}

// tcp reads /proc/net/snmp: a line of names, and one of values.
func (c *counters) tcp(text string) error {
	var lines [][]string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "Tcp:" {
			lines = append(lines, words)
		}
	}
	if len(lines) != 2 || len(lines[0]) != len(lines[1]) {
		return fmt.Errorf("/proc/net/snmp has %d lines of Tcp; want one of names and one of values", len(lines))
	}
	found := 0
	for i, name := range lines[0] {
		to := map[string]*int64{"OutSegs": &c.segments, "RetransSegs": &c.retransmitted}[name]
		if to == nil {
			continue
		}
		v, err := strconv.ParseInt(lines[1][i], 10, 64)
		if err != nil {
			return fmt.Errorf("/proc/net/snmp: %s: %w", name, err)
		}
		*to = v
		found++
	}
	if found != 2 {
		return fmt.Errorf("/proc/net/snmp has %d of OutSegs and RetransSegs", found)
	}
	return nil
}

// of is a direction of a profile.
func of(p lab.Profile, d sample.Direction) lab.Link {
	if d == sample.Forward {
		return p.Forward
	}
	return p.Reverse
}

// ideal is the payload per second of a direction whose link is always busy.
func ideal(l lab.Link) float64 { return float64(l.Rate) / 8 * segment / lab.MTU }

// drain is the time after which a direction's full queue is empty.
func drain(l lab.Link) time.Duration {
	return l.Delay + time.Duration(float64(l.Queue)*8/float64(l.Rate)*1e9)
}
