// Package kernelcounts reads the kernel's counters of UDP and of its backlog in a network namespace (/proc/net; fields of
// RFC 4113 and of Linux's net/ipv4/udp.c).
package kernelcounts

import (
	"bytes"
	"os"
	"strconv"
)

// Files are open files of /proc, of the network namespace of the thread that called Open. The zero value has none, and all
// its counts are zero.
type Files struct{ snmp, snmp6, softnet *os.File }

// Counts are the kernel's counters since boot; a counter that cannot be read is zero.
type Counts struct {
	// ChecksumErrors are those of UDP, IPv4 and IPv6, of the whole host.
	ChecksumErrors uint64
	// NoBuffer is the number of packets dropped because of full socket buffers, of the whole host; Known reports
	// whether it could be read.
	NoBuffer uint64
	Known    bool
	// Backlog is the number of packets dropped before the socket lookup.
	Backlog uint64
}

// Open opens the files. A missing file is not an error: its counts are zero.
func Open() Files {
	open := func(name string) *os.File {
		f, err := os.Open("/proc/thread-self/net/" + name)
		if err != nil {
			return nil // no such system, or no IPv6: nothing is counted
		}
		return f
	}
	return Files{open("snmp"), open("snmp6"), open("softnet_stat")}
}

// Close closes the files.
func (f Files) Close() {
	for _, f := range []*os.File{f.snmp, f.snmp6, f.softnet} {
		_ = f.Close() // an error for nil only
	}
}

// Read reads all counters.
func (f Files) Read() Counts {
	v4, v6 := whole(f.snmp), whole(f.snmp6)
	return Counts{
		ChecksumErrors: snmpValue(v4, "Udp:", "InCsumErrors") + snmp6Value(v6, "Udp6InCsumErrors"),
		NoBuffer: snmpValue(v4, "Udp:", "RcvbufErrors") + snmpValue(v4, "Udp:", "MemErrors") +
			snmp6Value(v6, "Udp6RcvbufErrors") + snmp6Value(v6, "Udp6MemErrors"),
		Known:   len(v4) > 0,
		Backlog: softnetDrops(whole(f.softnet)),
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

// Since is the increase of a counter.
func Since(now, before uint64) uint64 { return max(now, before) - before }

// softnetDrops reads /proc/net/softnet_stat: a line of hexadecimal numbers per processor, the second of which is the number
// of packets dropped because of its full backlog.
func softnetDrops(b []byte) (sum uint64) {
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) > 1 {
			sum += number(f[1], 16)
		}
	}
	return sum
}

// snmpValue reads /proc/net/snmp: a line of names followed by a line of values, both of which start with the protocol.
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
				return number(fields[i], 10)
			}
		}
	}
	return 0
}

// snmp6Value reads /proc/net/snmp6: a name and a value per line.
func snmp6Value(b []byte, name string) uint64 {
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == name {
			return number(f[1], 10)
		}
	}
	return 0
}

// number parses a number; 0 if it is invalid.
func number(b []byte, base int) uint64 {
	n, _ := strconv.ParseUint(string(b), base, 64)
	return n
}
