package gpsd

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

// chopped gives a stream in pieces of random length, with a deadline that passes
// now and then.
type chopped struct {
	rest   []byte
	random *rand.Rand
}

func (c *chopped) Read(b []byte) (int, error) {
	if c.random.IntN(5) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:min(len(c.rest), 1+c.random.IntN(1<<c.random.IntN(18)))])
	c.rest = c.rest[n:]
	return n, nil
}

// slowLines is what lines must give: each line, or its name if it is too long.
func slowLines(stream []byte, most int) (all []string) {
	parts := bytes.Split(stream, []byte("\n"))
	for i, line := range parts {
		switch {
		case len(line) > most:
			all = append(all, "too long")
		case i < len(parts)-1:
			all = append(all, string(bytes.TrimSuffix(line, []byte("\r"))))
		}
	}
	return all
}

func fastLines(t *testing.T, stream io.Reader, most int) (all []string) {
	l := newLines(stream, most)
	for {
		line, err := l.next()
		bad, ofLine := errors.AsType[*lineError](err)
		switch {
		case err == nil:
			all = append(all, string(line))
		case ofLine && bad.reason == tooLong:
			all = append(all, "too long")
		case errors.Is(err, os.ErrDeadlineExceeded):
		case errors.Is(err, io.EOF):
			return all
		default:
			t.Fatal(err)
		}
	}
}

func TestLinesAreThoseOfTheSlowReference(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		var stream []byte
		for range random.IntN(20) {
			length := random.IntN(1 << random.IntN(19))
			if random.IntN(4) == 0 {
				length = maxLine - 2 + random.IntN(5)
			}
			stream = append(stream, bytes.Repeat([]byte{byte('a' + random.IntN(26))}, length)...)
			stream = append(stream, []string{"\n", "\r\n", "\n\n"}[random.IntN(3)]...)
		}
		stream = append(stream, bytes.Repeat([]byte("z"), random.IntN(3)*maxLine)...)
		want := slowLines(stream, maxLine)
		got := fastLines(t, &chopped{rest: stream, random: random}, maxLine)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("want -, got +: %.300s", diff)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), uint64(1))
	f.Add([]byte("123456789012345\n1234567890123456\n123456789012345\r\n12345678901234\r\n"), uint64(2))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		got := fastLines(t, &chopped{rest: stream, random: rand.New(rand.NewPCG(seed, 0))}, 15)
		if diff := cmp.Diff(slowLines(stream, 15), got); diff != "" {
			t.Errorf("want -, got +: %.300s", diff)
		}
	})
}
