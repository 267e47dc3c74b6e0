package loadfmt

import (
	"encoding/hex"
	"math"
	"testing"
)

func TestFeedbackMatchesTheFormatOctetByOctet(t *testing.T) {
	s := Status{Serial: 1, Expected: 0x20, Packets: 0x1f, Reordered: 3, Duplicates: 4, Variation: 5, Bytes: 6, Elapsed: 0x0708}
	report := AppendReport(nil, 9, 2, s)
	const want = "00000001" + "00000020" + "0000001f" + "00000003" + "00000004" + "00000005" + "0000000000000006" + "0000000000000708"
	if got := hex.EncodeToString(report[HeaderBytes:]); got != want || len(report) != ReportBytes {
		t.Errorf("Report of %d octets: %s, want\n%s", len(report), got, want)
	}
	order := AppendOrder(nil, 9, 2, Pace{Serial: 1, Interval: 0x0102})
	if got := hex.EncodeToString(order[HeaderBytes:]); got != "00000001"+"00000000"+"0000000000000102" || len(order) != OrderBytes {
		t.Errorf("Order of %d octets: %s", len(order), got)
	}
	h, err := Parse(report)
	if got, ok := ParseStatus(report, h); err != nil || !ok || got != s || h.Session != 9 || h.Transfer != 2 {
		t.Errorf("header %+v, %v, Status %+v, %v", h, err, got, ok)
	}
	h, err = Parse(order)
	if got, ok := ParsePace(order, h); err != nil || !ok || got.Interval != 0x0102 || h.Session != 9 || h.Transfer != 2 {
		t.Errorf("header %+v, %v, Pace %+v, %v", h, err, got, ok)
	}
}

func TestInvalidFeedbackIsRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"no serial":                  AppendReport(nil, 1, 1, Status{}),
		"more packets than expected": AppendReport(nil, 1, 1, Status{Serial: 1, Expected: 1, Packets: 2}),
		"bytes":                      AppendReport(nil, 1, 1, Status{Serial: 1, Bytes: math.MaxUint64}),
		"time":                       AppendReport(nil, 1, 1, Status{Serial: 1, Elapsed: math.MaxUint64}),
		"truncated":                  AppendReport(nil, 1, 1, Status{Serial: 1})[:ReportBytes-1],
		"too long":                   append(AppendReport(nil, 1, 1, Status{Serial: 1}), 0),
		"order without serial":       AppendOrder(nil, 1, 1, Pace{Interval: 1}),
		"no interval":                AppendOrder(nil, 1, 1, Pace{Serial: 1}),
		"below zero":                 AppendOrder(nil, 1, 1, Pace{Serial: 1, Interval: math.MaxUint64}),
		"order too long":             append(AppendOrder(nil, 1, 1, Pace{Serial: 1, Interval: 1}), 0),
	} {
		h, err := Parse(b)
		if err != nil {
			t.Fatal(name, err)
		}
		if s, ok := ParseStatus(b, h); ok {
			t.Errorf("%s: accepted Status %+v", name, s)
		}
		if p, ok := ParsePace(b, h); ok {
			t.Errorf("%s: accepted Pace %+v", name, p)
		}
	}
}

// FuzzFeedback checks that any packet is refused or parsed and written unchanged.
func FuzzFeedback(f *testing.F) {
	f.Add(AppendReport(nil, 1, 2, Status{Serial: 3, Expected: 5, Packets: 4, Variation: NoVariation, Bytes: 6, Elapsed: 7}))
	f.Add(AppendOrder(nil, 1, 2, Pace{Serial: 3, Interval: 4}))
	f.Add(AppendHello(nil, 1, 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Parse(b)
		if err != nil {
			return
		}
		if s, ok := ParseStatus(b, h); ok {
			again := AppendReport(nil, h.Session, h.Transfer, s)
			if got, ok := ParseStatus(again, h); !ok || got != s {
				t.Errorf("Status %+v became %+v, %v", s, got, ok)
			}
		}
		if p, ok := ParsePace(b, h); ok {
			again := AppendOrder(nil, h.Session, h.Transfer, p)
			if got, ok := ParsePace(again, h); !ok || got != p {
				t.Errorf("Pace %+v became %+v, %v", p, got, ok)
			}
		}
	})
}
