package kernelcounts

import "testing"

func TestKernelsCountsAreRead(t *testing.T) {
	const snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64\nUdp: InDatagrams NoPorts InErrors InCsumErrors\nUdp: 7 8 9 10\nUdpLite: InCsumErrors\nUdpLite: 99\n"
	if got := snmpValue([]byte(snmp), "Udp:", "InCsumErrors"); got != 10 {
		t.Errorf("%d, want 10", got)
	}
	const snmp6 = "Udp6InErrors                    \t3\nUdp6InCsumErrors                \t4\n"
	if got := snmp6Value([]byte(snmp6), "Udp6InCsumErrors"); got != 4 {
		t.Errorf("%d, want 4", got)
	}
	if got := softnetDrops([]byte("0001 0000000a 3\n0002 00000010\nx\n7 y\n")); got != 26 {
		t.Errorf("%d, want 26", got)
	}
	for _, bad := range []string{"", "Udp:", "Udp: InCsumErrors", "Udp: InCsumErrors\nUdp:", "Udp: InCsumErrors\nUdp: x"} {
		if got := snmpValue([]byte(bad), "Udp:", "InCsumErrors") + snmp6Value([]byte(bad), "Udp6InCsumErrors"); got != 0 {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

// Files of /proc of another kernel version are read without an error.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("Udp: InDatagrams InCsumErrors\nUdp: 7 10\n"))
	f.Add([]byte("Udp6InCsumErrors\t4\n"))
	f.Add([]byte("0001 0000000a 3\n0002 00000010\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		snmpValue(b, "Udp:", "InCsumErrors")
		snmp6Value(b, "Udp6InCsumErrors")
		softnetDrops(b)
	})
}
