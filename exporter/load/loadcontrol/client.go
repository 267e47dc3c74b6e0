package loadcontrol

import (
	"bufio"
	"cmp"
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
	"strings"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/net/tcpsocket"
)

// ReplyTimeout is the timeout of a reply.
const ReplyTimeout = 10 * time.Second

// Client is the client end of a session. Its methods are safe for concurrent use. After the end of
// the session they return the error of Err.
type Client struct {
	*Conn
	welcome    Welcome
	part       *openedPart     // nil: the client of a whole session
	reflecting chan Reflecting // its reply; one place
}

// Welcome returns the first message of the load server.
func (c *Client) Welcome() Welcome { return c.welcome }

// Open requests the session. A refusal, such as Busy, ends the connection: dial again later. After
// Open one goroutine calls deliver with the messages of the traffic, in order; an error of deliver
// ends the session. With a nil deliver any message ends it.
func (c *Client) Open(ctx context.Context, o Open, deliver func(s *TrafficMessage, data []byte) error) (Opened, error) {
	if c.part != nil {
		return c.part.open(deliver), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ReplyTimeout, fmt.Errorf("no reply within %v", ReplyTimeout))
	defer cancel()
	if err := c.Write(Message{Open: &o}); err != nil {
		return Opened{}, err
	}
	m, _, err := c.Read(ctx)
	switch {
	case err != nil && c.Err() == nil:
		return Opened{}, c.Wrap(fmt.Errorf("open: %w", context.Cause(ctx)))
	case err != nil:
		return Opened{}, err
	case m.Opened == nil:
		err = c.lost(unexpected(&m))
		c.end(err)
		return Opened{}, err
	}
	c.tasks.Go(func() { c.route(deliver) })
	return *m.Opened, nil
}

// route delivers the messages of the load server until the connection ends. An unexpected message
// violates the protocol.
func (c *Client) route(deliver func(*TrafficMessage, []byte) error) {
	for {
		m, data, err := c.Read(context.Background())
		if err != nil {
			return
		}
		err = unexpected(&m)
		switch {
		case m.Traffic != nil && deliver != nil:
			err = deliver(m.Traffic, data)
		case m.Reflecting != nil:
			err = c.reflects(m.Reflecting)
		}
		if err != nil {
			c.end(c.lost(err))
		}
	}
}

func unexpected(m *Message) error { return fmt.Errorf("%w: unexpected %s", ErrProtocol, m.name()) }

// SendMessage sends a message of the traffic.
func (c *Client) SendMessage(name string, body any) error {
	if c.part != nil {
		name = PartMessage(c.part.name, name)
	}
	return c.Conn.SendMessage(name, body, nil)
}

// DialTimeout is the timeout of Dial, from the name lookup to the Welcome.
const DialTimeout = 15 * time.Second

// maxHeaderBytes is the most bytes read of the header of an HTTP response.
const maxHeaderBytes = 32 << 10

// ClientOptions configure Dial. The load server is verified by CAFile, Pin or both, or else by the
// host's certificate authorities; the client authenticates with Token or CertFile. Printed or
// logged, they do not show the token.
type ClientOptions struct {
	// Address is host:port; the default port is DefaultPort.
	Address string
	// Token is sent in the Authorization header only. Empty: none.
	Token string `json:"-"`
	// CAFile has the certificate authorities, in PEM, of the load server's certificate. Empty:
	// the host's.
	CAFile string
	// Pin is the hash of the load server's key, "sha256:<hex>", as it logs it: see PinOf. It
	// replaces the checks of authority, name and date; with CAFile both must succeed.
	Pin string
	// CertFile and KeyFile are a client certificate, in PEM. Empty: none.
	CertFile, KeyFile string
	// ServerName is the name to verify in the certificate. Empty: the host of Address.
	ServerName string
	// Local is the source address. The zero value: the kernel chooses.
	Local netip.Addr
	// Family is "ipv4", "ipv6" or "any"; empty: any.
	Family string
}

// LogValue returns the address only.
func (o ClientOptions) LogValue() slog.Value { return slog.StringValue(o.Address) }

// Format prints the address only, with every verb.
func (o ClientOptions) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, o.Address) }

// CheckToken returns an error if the token is invalid in a header (RFC 6750 section 2.1). The error
// does not show the token.
func CheckToken(token string) error {
	if len(token) > 4096 {
		return errors.New("loadcontrol: the token is longer than 4096 bytes")
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("loadcontrol: byte %d of the token is a space or not printable ASCII", i)
		}
	}
	return nil
}

// segmentBytes is the MSS of the connection, in both directions, such that segments pass nearly every path over IPv4 and IPv6: the
// tests tell a path that drops larger packets, and the handshake of TLS does not end on it.
const segmentBytes = ipheader.AnyPathBytes - ipheader.IPv6 - ipheader.TCP

// Dial connects to a load server and returns after its Welcome, within DialTimeout. errors.As finds a
// *Refusal in the error; every error names the address.
func Dial(ctx context.Context, o ClientOptions) (*Client, error) {
	host, port, err := hostport.Split(o.Address, DefaultPort)
	if err != nil {
		return nil, fmt.Errorf("loadcontrol: address %q: %w", o.Address, err)
	}
	at, _ := netip.ParseAddr(host) // a name has no zone
	if err := cmp.Or(hostport.CheckZone(at), hostport.CheckZone(o.Local)); err != nil {
		return nil, &ServerError{o.Address, err}
	}
	network, known := map[string]string{"": "tcp", hostport.AnyFamily: "tcp", hostport.IPv4: "tcp4", hostport.IPv6: "tcp6"}[o.Family]
	if !known {
		return nil, fmt.Errorf("loadcontrol: family %q: want any, ipv4 or ipv6", o.Family)
	}
	if err := CheckToken(o.Token); err != nil {
		return nil, err
	}
	trust, err := clientTLS(&o, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, DialTimeout, errNoReply)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: KeepAlive(), Control: tcpsocket.Options{MSS: segmentBytes}.Control}
	if o.Local.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(hostport.Numbered(o.Local), 0))
	}
	address, to := net.JoinHostPort(host, strconv.Itoa(int(port))), host
	if at.Zone() != "" {
		to = hostport.Numbered(at).String()
	}
	nc, err := d.DialContext(ctx, network, net.JoinHostPort(to, strconv.Itoa(int(port))))
	if op, ok := errors.AsType[*net.OpError](err); ok { // with the names of interfaces
		if at.Zone() != "" {
			op.Addr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, port))
		}
		if o.Local.Zone() != "" {
			op.Source = net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.Local, 0))
		}
	}
	if none, ok := errors.AsType[*net.AddrError](err); ok && none.Err == "no suitable address found" { // package net exports no value for it
		err = fmt.Errorf("it has no address of family %s", hostport.WantedFamily(o.Family, o.Local))
	}
	if err != nil {
		return nil, explain(ctx, address, err)
	}
	client, err := handshake(ctx, nc, trust, &o, address)
	if err != nil {
		_ = nc.Close() // err is returned
		if to := nc.RemoteAddr().String(); to != address {
			address += " (" + to + ")"
		}
		return nil, explain(ctx, address, err)
	}
	return client, nil
}

// handshake does the TLS handshake, the upgrade and the read of the Welcome.
func handshake(ctx context.Context, nc net.Conn, trust *tls.Config, o *ClientOptions, address string) (*Client, error) {
	secure := tls.Client(nc, trust)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, &phaseError{phaseTLS, err}
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
		return &Client{Conn: conn, welcome: *m.Welcome, reflecting: make(chan Reflecting, 1)}, nil
	}
	conn.end(err)
	_ = conn.Close() // err is returned
	return nil, err
}

// upgrade requests the session over HTTP/1.1. It returns the bytes after the response that are
// already read.
func upgrade(nc net.Conn, o *ClientOptions, address string) (early []byte, err error) {
	address = strings.Replace(address, "%", "%25", 1) // a zone (RFC 6874); the Host header has none
	request, err := http.NewRequest(http.MethodGet, "https://"+address+Path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", Protocol)
	request.Header.Set("User-Agent", "oneway")
	if o.Token != "" {
		request.Header.Set("Authorization", "Bearer "+o.Token)
	}
	if err := request.Write(nc); err != nil {
		return nil, &phaseError{"HTTP", err}
	}
	limited := &io.LimitedReader{R: nc, N: maxHeaderBytes}
	in := bufio.NewReader(limited)
	reply, err := http.ReadResponse(in, request)
	if err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("more than %d bytes of headers", maxHeaderBytes)
		}
		return nil, &phaseError{"HTTP", err}
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusSwitchingProtocols {
		limited.N = maxHeaderBytes
		return nil, refused(reply)
	}
	if reply.Header.Get("Upgrade") != Protocol {
		return nil, &phaseError{"HTTP", fmt.Errorf("the response upgrades to the protocol %.40q, want %q", reply.Header.Get("Upgrade"), Protocol)}
	}
	limited.N = math.MaxInt64
	return in.Peek(in.Buffered())
}
