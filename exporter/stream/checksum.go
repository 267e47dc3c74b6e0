package stream

import (
	"bytes"
	"os"
	"strconv"
)

// checksumErrors is the kernel's count of UDP packets with a wrong checksum, IPv4 and
// IPv6, since the boot; zero where it cannot be read.
func checksumErrors() uint64 {
	v4, _ := os.ReadFile("/proc/self/net/snmp")
	v6, _ := os.ReadFile("/proc/self/net/snmp6")
	return snmpValue(v4, "Udp:", "InCsumErrors") + snmp6Value(v6, "Udp6InCsumErrors")
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
