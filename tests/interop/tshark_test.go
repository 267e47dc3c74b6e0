package interop

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// requireTShark returns the path of Wireshark's terminal program.
func requireTShark(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil && os.Getenv("ONEWAY_INTEROP") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("SKIPPED, NOT PASSED: %v: install Debian's tshark", err)
	}
	return path
}

// fields are those requested from tshark for every packet: first those that must be the same for all.
var fields = []string{
	"frame.protocols", "udp.checksum.status", "_ws.malformed", "_ws.expert.message", "twamp.test.padding",
	"twamp.test.seq_number", "twamp.test.timestamp", "twamp.test.error_estimate",
	"twamp.test.error_estimate.s", "twamp.test.error_estimate.z", "twamp.test.error_estimate.scale",
	"twamp.test.error_estimate.multiplier", "twamp.test.mbz1", "twamp.test.receive_timestamp",
	"twamp.test.sender_seq_number", "twamp.test.sender_timestamp", "twamp.test.sender_error_estimate",
	"twamp.test.mbz2", "twamp.test.sender_ttl",
}

// dissect makes tshark decode the packets of a file as TWAMP-Test, its dissector for STAMP: by RFC 8762 section 4.6
// both are the same in unauthenticated mode, up to the Sender TTL in byte 40. It treats later bytes as padding, and the
// SSID as a field that must be zero.
func dissect(t *testing.T, packets []captured) []map[string]string {
	t.Helper()
	tshark := requireTShark(t)
	path := filepath.Join(t.TempDir(), "stamp.pcap")
	if err := os.WriteFile(path, capture(packets), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-n", "-r", path, "-d", fmt.Sprintf("udp.port==%d,twamp.test", stampfmt.Port), "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-E", "separator=|", "-E", "occurrence=f",
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command(tshark, args...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	var found []map[string]string
	for line := range strings.Lines(string(out)) {
		values := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(values) != len(fields) {
			t.Fatalf("tshark printed %q", line)
		}
		m := map[string]string{}
		for i, f := range fields {
			m[strings.TrimPrefix(f, "twamp.test.")] = values[i]
		}
		found = append(found, m)
	}
	if len(found) != len(packets) {
		t.Fatalf("tshark decoded %d of %d packets\n%s", len(found), len(packets), stderr.String())
	}
	return found
}

func TestTSharkReadsOurPackets(t *testing.T) {
	requireTShark(t)
	packets := ourPackets()
	for i, got := range dissect(t, packets) {
		p := packets[i]
		t.Run(p.name, func(t *testing.T) {
			want := map[string]string{
				"frame.protocols": "raw:ip:udp:twamp.test", "udp.checksum.status": "1", "_ws.malformed": "", "_ws.expert.message": "",
				"padding": hex.EncodeToString(p.payload[41:]),
			}
			maps.Copy(want, p.want)
			for name, value := range want {
				if !sameValue(got[name], value) {
					t.Errorf("%s is %q, want %q", name, got[name], value)
				}
			}
		})
	}
}

// sameValue compares tshark's output: versions differ in the format of numbers (4660, 0x1234) and flags (1, True).
func sameValue(got, want string) bool {
	got = strings.NewReplacer("True", "1", "False", "0").Replace(got)
	g, err := strconv.ParseUint(got, 0, 64)
	w, err2 := strconv.ParseUint(want, 0, 64)
	return got == want || err == nil && err2 == nil && g == w
}

// sentAt is T1; T2 and T3 are 2 and 3 us later.
var sentAt = instant.FromTime(time.Date(2026, 3, 1, 12, 34, 56, 123456789, time.UTC))

const (
	tai         = 37 * time.Second
	clockBound  = time.Millisecond // 132 x 2^(15-32) s, rounded up
	senderPort  = 49152
	requestTime = "Mar  1, 2026 12:34:56.123456789 UTC"
	arrivalTime = "Mar  1, 2026 12:34:56.123458789 UTC"
	replyTime   = "Mar  1, 2026 12:34:56.123459789 UTC"
)

func request(f timefmt.Format, seq uint32) stampfmt.SenderPacket {
	return stampfmt.SenderPacket{
		Seq: seq, T1: f.Encode(sentAt, tai), Error: timefmt.MakeErrorEstimate(clockBound, true, f), SSID: 0x1234,
	}
}

func replyTo(q stampfmt.SenderPacket, seq uint32) stampfmt.ReflectorPacket {
	f := q.Error.Format()
	return stampfmt.ReflectorPacket{
		Seq: seq, T2: f.Encode(sentAt.Add(2000), tai), T3: f.Encode(sentAt.Add(3000), tai),
		Error: timefmt.MakeErrorEstimate(clockBound, false, f), SSID: q.SSID,
		SenderSeq: q.Seq, SenderT1: q.T1, SenderError: q.Error, SenderTTL: 63,
	}
}

// addTLVs appends one of each type, the Receipt among them, and writes HMAC and CRC.
func addTLVs(b []byte, authenticated bool, k *stampfmt.Key) []byte {
	base := len(b)
	b = stampfmt.FollowUp{Seq: 8, T3: 9, Mode: 2}.AppendTo(b)
	b = stampfmt.Receipt{Words: 4, Filled: true, T2Origin: sample.Kernel, Run: 1, Epoch: 2, Next: 3, Received: 3}.AppendTo(b)
	b = stampfmt.ClassOfService{DSCP1: 46, DSCP2: 20, ECN: 1}.AppendTo(stampfmt.TimestampInformation{}.AppendTo(b))
	b = stampfmt.AppendPadding(stampfmt.DirectMeasurement{SenderTx: 7}.AppendTo(b), 301, 7)
	if k != nil {
		b = stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(b), base, k)
	}
	stampfmt.SealCRC(b, authenticated)
	if k != nil {
		stampfmt.PutTLVHMAC(b, base, k)
	}
	return b
}

// ourPackets are packets of oneway's sender and reflector, with the expected output of tshark for each.
func ourPackets() []captured {
	k := stampfmt.NewKey([]byte("a key that only the two ends know"))
	ask := func(seq string) map[string]string {
		return map[string]string{
			"seq_number": seq, "timestamp": requestTime, "error_estimate": "0x8f84", "error_estimate.s": "1",
			"error_estimate.z": "0", "error_estimate.scale": "15", "error_estimate.multiplier": "132", "mbz1": "0x1234",
			"sender_seq_number": "0", "sender_error_estimate": "0x0000", "mbz2": "0x0000", "sender_ttl": "0",
		}
	}
	reply := map[string]string{
		"seq_number": "9", "timestamp": replyTime, "error_estimate": "0x0f84", "error_estimate.s": "0",
		"error_estimate.z": "0", "error_estimate.scale": "15", "error_estimate.multiplier": "132", "mbz1": "0x1234",
		"receive_timestamp": arrivalTime, "sender_seq_number": "7", "sender_timestamp": requestTime,
		"sender_error_estimate": "0x8f84", "mbz2": "0x0000", "sender_ttl": "63",
	}
	q, last := request(timefmt.NTP, 7), request(timefmt.NTP, 1<<32-1)
	a := replyTo(q, 9)
	all := []captured{
		{name: "request", payload: q.AppendTo(nil), want: ask("7")},
		{name: "request with the last number", payload: last.AppendTo(nil), want: ask("4294967295")},
		{name: "request with TLVs", payload: addTLVs(q.AppendTo(nil), false, nil), want: ask("7")},
		{name: "request with TLVs and their HMAC", payload: addTLVs(q.AppendTo(nil), false, k), want: ask("7")},
		{name: "reply", reply: true, payload: a.AppendTo(nil), want: reply},
		{name: "reply with TLVs", reply: true, payload: addTLVs(a.AppendTo(nil), false, nil), want: reply},
	}
	return append(append(all, ptpPackets()...), sealedPackets(q, a, k)...)
}

// ptpPackets: tshark supports the Z bit, and shows the seconds of the PTP timescale unchanged, 37 s ahead of UTC. It
// always decodes the Sender Timestamp as NTP.
func ptpPackets() []captured {
	q := request(timefmt.PTP, 7)
	return []captured{{
		name: "PTP request", payload: q.AppendTo(nil),
		want: map[string]string{
			"seq_number": "7", "timestamp": "Mar  1, 2026 12:35:33.123456789 UTC",
			"error_estimate": "0xcf84", "error_estimate.s": "1", "error_estimate.z": "1",
		},
	}, {
		name: "PTP reply", reply: true, payload: replyTo(q, 9).AppendTo(nil),
		want: map[string]string{
			"seq_number": "9", "timestamp": "Mar  1, 2026 12:35:33.123459789 UTC",
			"receive_timestamp": "Mar  1, 2026 12:35:33.123458789 UTC",
			"error_estimate":    "0x4f84", "error_estimate.z": "1", "sender_seq_number": "7",
			"sender_error_estimate": "0xcf84", "sender_ttl": "63",
		},
	}}
}

// sealedPackets are authenticated. tshark does not support that mode of TWAMP-Test, but decodes bytes 16 to 23, which
// are the packet's own timestamp in that mode, as the Receive Timestamp.
func sealedPackets(q stampfmt.SenderPacket, a stampfmt.ReflectorPacket, k *stampfmt.Key) []captured {
	sealed := func(seq, stamp string) map[string]string {
		return map[string]string{
			"seq_number": seq, "receive_timestamp": stamp, "error_estimate": "0x0000", "mbz1": "0x0000",
		}
	}
	var all []captured
	for _, tlvs := range []bool{false, true} {
		ask, reply := q.AppendAuthenticatedTo(nil, k), a.AppendAuthenticatedTo(nil, k)
		if tlvs {
			ask, reply = addTLVs(ask, true, k), addTLVs(reply, true, k)
		}
		name := " with TLVs " + strconv.FormatBool(tlvs)
		all = append(
			all,
			captured{name: "authenticated request" + name, payload: ask, want: sealed("7", requestTime)},
			captured{name: "authenticated reply" + name, reply: true, payload: reply, want: sealed("9", replyTime)},
		)
	}
	return all
}
