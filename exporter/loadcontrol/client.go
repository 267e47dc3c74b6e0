package loadcontrol

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"oneway.example/exporter/hostport"
)

// ReplyTime is how long a load server that is there may think about a request.
const ReplyTime = 10 * time.Second

// Client is a session as its client sees it. Its methods may be called at the same time.
// Where a session has ended they return Err's error.
type Client struct {
	*Conn
	welcome Welcome
}

// Welcome is what the load server said first.
func (c *Client) Welcome() Welcome { return c.welcome }

// Open asks for the session. A refusal, such as Busy, ends it: dial again later. From then on
// deliver is given the messages of the traffic's, in order and by one goroutine; an error of
// it ends the session. deliver may be nil: then any message does.
func (c *Client) Open(ctx context.Context, o Open, deliver func(s *Say, data []byte) error) (Opened, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ReplyTime, fmt.Errorf("no reply within %v", ReplyTime))
	defer cancel()
	if err := c.Write(Message{Open: &o}); err != nil {
		return Opened{}, err
	}
	m, _, err := c.Read(ctx)
	switch {
	case err != nil && c.Err() == nil:
		return Opened{}, fmt.Errorf("loadcontrol: %s: open: %w", c.Remote(), context.Cause(ctx))
	case err != nil:
		return Opened{}, err
	case m.Opened == nil:
		err = c.lost(notAsked(&m))
		c.end(err)
		return Opened{}, err
	}
	c.tasks.Go(func() { c.route(deliver) })
	return *m.Opened, nil
}

// route delivers what the load server says until the connection has ended. What nobody waits for
// breaks the protocol.
func (c *Client) route(deliver func(*Say, []byte) error) {
	for {
		m, data, err := c.Read(context.Background())
		if err != nil {
			return
		}
		err = notAsked(&m)
		if m.Say != nil && deliver != nil {
			err = deliver(m.Say, data)
		}
		if err != nil {
			c.end(c.lost(err))
		}
	}
}

func notAsked(m *Message) error { return fmt.Errorf("%w: %s was not asked for", ErrProtocol, m.name()) }

// Say says a message of the traffic's.
func (c *Client) Say(name string, body any) error { return c.Conn.Say(name, body, nil) }

// DialTime is how long Dial takes at most, from the name to the Welcome.
const DialTime = 15 * time.Second

// maxHeaderBytes of an HTTP answer are read.
const maxHeaderBytes = 32 << 10

// ClientOptions say where a load server is, why it is to be trusted, and who asks. One of CAFile
// and Pin, or a certificate that this host trusts anyway, is needed; and one of Token and
// CertFile. Printed or logged, they do not show the token.
type ClientOptions struct {
	// Address is host:port; without a port, DefaultPort.
	Address string
	// Token goes into the Authorization header, and nowhere else. Empty: none.
	Token string `json:"-"`
	// CAFile has the authorities, in PEM, that sign the load server's certificate. Empty:
	// the host's own.
	CAFile string
	// Pin is the load server's key, "sha256:<hex>", as it logs it: see PinOf. It stands for
	// the authorities, the name and the date; with CAFile, both must agree.
	Pin string
	// CertFile and KeyFile are a client certificate, in PEM. Empty: none.
	CertFile, KeyFile string
	// ServerName is what the certificate must be for. Empty: the host of Address.
	ServerName string
	// Local is the address to dial from. The zero value: the kernel's choice.
	Local netip.Addr
	// Family is "ipv4", "ipv6" or "any", which is what empty means.
	Family string
}

// LogValue is the address alone.
func (o ClientOptions) LogValue() slog.Value { return slog.StringValue(o.Address) }

// Format prints the address alone, with every verb.
func (o ClientOptions) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, o.Address) }

// checkToken tells whether the token can stand in a header (RFC 6750 section 2.1). The error
// does not show it.
func checkToken(token string) error {
	if len(token) > 4096 {
		return errors.New("loadcontrol: token: longer than 4096 bytes: is it a token?")
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("loadcontrol: token: byte %d of it is a blank or not ASCII: want letters, digits and signs only", i)
		}
	}
	return nil
}

// Dial connects to a load server and returns when it has said Welcome. It takes at most
// DialTime, or less if ctx ends. A refusal is found in the error by errors.As with *Refusal;
// every error names the address.
func Dial(ctx context.Context, o ClientOptions) (*Client, error) {
	host, port, err := hostport.Split(o.Address, DefaultPort)
	if err != nil {
		return nil, fmt.Errorf("loadcontrol: address %q: %w", o.Address, err)
	}
	network, known := map[string]string{"": "tcp", "any": "tcp", "ipv4": "tcp4", "ipv6": "tcp6"}[o.Family]
	if !known {
		return nil, fmt.Errorf("loadcontrol: family %q: want any, ipv4 or ipv6", o.Family)
	}
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	trust, err := clientTLS(&o, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, DialTime, errNoReply)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: KeepAlive()}
	if o.Local.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: o.Local.AsSlice(), Zone: o.Local.Zone()}
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(port)))
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, explain(ctx, address, err)
	}
	client, err := greet(ctx, nc, trust, &o, address)
	if err != nil {
		_ = nc.Close() // the error says more
		if to := nc.RemoteAddr().String(); to != address {
			address += " (" + to + ")"
		}
		return nil, explain(ctx, address, err)
	}
	return client, nil
}

// greet goes from a TCP connection to the Welcome.
func greet(ctx context.Context, nc net.Conn, trust *tls.Config, o *ClientOptions, address string) (*Client, error) {
	secure := tls.Client(nc, trust)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, &stepError{"TLS", err}
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	early, err := upgrade(secure, o, address)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	conn := newConn(secure, early, true)
	m, _, err := conn.Read(ctx)
	switch {
	case err != nil:
	case m.Welcome == nil:
		err = fmt.Errorf("%w: %s before welcome", ErrProtocol, m.name())
	default:
		return &Client{Conn: conn, welcome: *m.Welcome}, nil
	}
	conn.end(err)
	_ = conn.Close() // the error says more
	return nil, err
}

// upgrade asks for the session over HTTP/1.1. It returns the bytes after the reply that are
// already read.
func upgrade(nc net.Conn, o *ClientOptions, address string) (early []byte, err error) {
	request, err := http.NewRequest(http.MethodGet, "https://"+address+Path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", protocol)
	request.Header.Set("User-Agent", "oneway")
	if o.Token != "" {
		request.Header.Set("Authorization", "Bearer "+o.Token)
	}
	if err := request.Write(nc); err != nil {
		return nil, &stepError{"HTTP", err}
	}
	limited := &io.LimitedReader{R: nc, N: maxHeaderBytes}
	in := bufio.NewReader(limited)
	reply, err := http.ReadResponse(in, request)
	if err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("more than %d bytes of headers", maxHeaderBytes)
		}
		return nil, &stepError{"HTTP", err}
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusSwitchingProtocols {
		limited.N = maxHeaderBytes
		return nil, refused(reply)
	}
	if reply.Header.Get("Upgrade") != protocol {
		return nil, &stepError{"HTTP", fmt.Errorf("it switched to the protocol %.40q, want %q", reply.Header.Get("Upgrade"), protocol)}
	}
	limited.N = math.MaxInt64
	return in.Peek(in.Buffered())
}
