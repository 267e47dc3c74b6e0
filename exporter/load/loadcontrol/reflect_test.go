package loadcontrol

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// opened opens a session with a load server that then replies to Reflect as the script does.
func opened(t *testing.T, script func(*Conn)) *Client {
	t.Helper()
	c := converse(t, func(c *Conn) {
		if m, _, err := c.Read(context.Background()); err != nil || m.Open == nil {
			t.Errorf("%+v, %v; want open", m, err)
		}
		_ = c.SendOpened(1)
		if m, _, err := c.Read(context.Background()); err != nil || m.Reflect == nil || m.Reflect.Bytes != 100 {
			t.Errorf("%+v, %v; want reflect", m, err)
		}
		script(c)
		<-c.Done()
	})
	if _, err := c.Open(t.Context(), Open{Traffic: "udp", Run: "r", Bytes: 1, Duration: time.Minute}, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReflectReturnsTheReplyOrItsRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := opened(t, func(c *Conn) {
			send(c, Message{Reflecting: &Reflecting{Port: 8621, Key: []byte("0123456789abcdef")}})
		})
		r, err := c.Reflect(t.Context(), Reflect{Bytes: 100})
		if err != nil || r.Port != 8621 || string(r.Key) != "0123456789abcdef" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := opened(t, func(c *Conn) {
			send(c, Message{Reflecting: &Reflecting{Refusal: &Refusal{Reason: TooMany, Detail: "no\x00port"}}})
		})
		_, err := c.Reflect(t.Context(), Reflect{Bytes: 100})
		if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Detail != "no?port" {
			t.Errorf("%v", err)
		}
		if c.Err() != nil {
			t.Errorf("the session ended: %v", c.Err())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := opened(t, func(*Conn) {})
		if _, err := c.Reflect(t.Context(), Reflect{Bytes: 100}); err == nil || !strings.Contains(err.Error(), "reflect: no reply within 10s") {
			t.Errorf("%v", err)
		}
	})
}

func TestReflectingWithoutAPortOrAKeyViolatesTheProtocol(t *testing.T) {
	for _, text := range []string{`{"reflecting":{}}`, `{"reflecting":{"port":1,"key":"AAAA"}}`, `{"reflecting":{"key":"AAAAAAAAAAAAAAAAAAAAAAAA"}}`, `{"reflecting":{"refusal":{"reason":"weather","detail":""}}}`} {
		if _, err := decode([]byte(text)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPacketsTakeATenthOfTheTokensRate(t *testing.T) {
	for rate, want := range map[float64]int{0: 200, 1e9: 200, 2600 * 20: 20, 2600: 1, 2000: 0} {
		if got := (Limits{BytesPerSecond: rate}).ReflectRate(); got != want {
			t.Errorf("%v bytes/s: %d packets/s, want %d", rate, got, want)
		}
	}
}
