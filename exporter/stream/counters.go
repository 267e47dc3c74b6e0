package stream

import (
	"bytes"
	"os"
	"strconv"
)

// counters are files of /proc that stay open, so that they are those of the network
// namespace that the socket was opened in.
type counters struct{ snmp, snmp6, softnet *os.File }

// counts are the kernel's since the boot; what cannot be read is zero.
type counts struct {
	// checksumErrors of UDP, IPv4 and IPv6, on the whole host.
	checksumErrors uint64
	// noBuffer are the packets that sockets of the whole host had no room for; known
	// tells whether that could be read.
	noBuffer uint64
	known    bool
	// backlog are the packets that were dropped before any socket was looked for.
	backlog uint64
}

func openCounters() (c counters) {
	open := func(name string) *os.File {
		f, err := os.Open("/proc/thread-self/net/" + name)
		if err != nil {
			return nil // no such system, or no IPv6: nothing is counted
		}
		return f
	}
	return counters{open("snmp"), open("snmp6"), open("softnet_stat")}
}

func (c counters) close() {
	for _, f := range []*os.File{c.snmp, c.snmp6, c.softnet} {
		_ = f.Close() // of nil it is an error, and none otherwise
	}
}

func (c counters) read() counts {
	v4, v6 := whole(c.snmp), whole(c.snmp6)
	return counts{
		checksumErrors: snmpValue(v4, "Udp:", "InCsumErrors") + snmp6Value(v6, "Udp6InCsumErrors"),
		noBuffer: snmpValue(v4, "Udp:", "RcvbufErrors") + snmpValue(v4, "Udp:", "MemErrors") +
			snmp6Value(v6, "Udp6RcvbufErrors") + snmp6Value(v6, "Udp6MemErrors"),
		known:   len(v4) > 0,
		backlog: softnetDrops(whole(c.softnet)),
	}
}

// whole reads a file of /proc from its beginning.
func whole(f *os.File) (b []byte) {
	if f == nil {
		return nil
	}
	part := make([]byte, 16<<10)
	for {
		n, err := f.ReadAt(part, int64(len(b)))
		b = append(b, part[:n]...)
		if err != nil || n == 0 {
			return b
		}
	}
}

// since is by how much a count has grown.
func since(now, before uint64) uint64 { return max(now, before) - before }

// softnetDrops reads /proc/net/softnet_stat: a line a processor, of hexadecimal numbers,
// the second of which are the packets that its backlog had no room for.
func softnetDrops(b []byte) (sum uint64) {
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) > 1 {
			n, err := strconv.ParseUint(string(f[1]), 16, 64)
			if err == nil {
				sum += n
			}
		}
	}
	return sum
}

// snmpValue reads /proc/net/snmp: a line of names and then a line of values, both of
// which begin with the protocol.
func snmpValue(b []byte, protocol, name string) uint64 {
	var names [][]byte
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names[:min(len(names), len(fields))] {
			if string(n) == name {
				return number(fields[i])
			}
		}
	}
	return 0
}

// snmp6Value reads /proc/net/snmp6: a name and a value a line.
func snmp6Value(b []byte, name string) uint64 {
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == name {
			return number(f[1])
		}
	}
	return 0
}

func number(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
