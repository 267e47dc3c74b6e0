package sizesweep

import (
	"testing"

	"oneway.example/tests/probeoptions"
)

func TestOptionsOfTheProbeAndOfAllLoadTestsStandTogether(t *testing.T) {
	probeoptions.Accepted(t, NewType(), "packet_bytes: [64, 1500]\npacket_rates: [100]\ncell_duration: 1s\nrepetitions: 20\nseed: 3\nevery: 1h\ndirections: [reverse]\n", "packet_byte", "packet_bytes")
}

func TestWrongOptionsNameTheExpectation(t *testing.T) {
	probeoptions.Refused(t, NewType(), map[string]string{
		"packet_bytes: []\n":                  "packet_bytes has 0 values; it must have 1 to 48",
		"packet_bytes: [64, 20]\n":            "packet_bytes[1] is 20; it must be between 60 and 9000",
		"packet_bytes: [64, 64]\n":            "packet_bytes[1] is 64 for the second time",
		"packet_rates: [0]\n":                 "packet_rates[0] is 0; it must be between 1 and 100000",
		"packet_rates: [100, 1000000]\n":      "packet_rates[1] is 1000000; it must be between 1 and 100000",
		"cell_duration: 1ms\n":                "cell_duration is 1ms; it must be between 100ms and 10m0s",
		"cell_duration: 5m\n":                 "cell_duration is 5m0s, 3000000 packets at the highest rate; at most 2000000 are allowed",
		"repetitions: 0\n":                    "repetitions is 0; it must be between 1 and 100",
		"every: 1s\n":                         "every is 1s; it must be between 10s and 168h0m0s",
		"packet_rates: [1,2,3,4,5,6,7,8,9]\n": "packet_bytes times packet_rates are 54 cells; at most 48 are allowed",
	})
}
