package influxdb

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/keyfile"
)

// client sends requests, one at a time.
type client struct {
	options  Options
	endpoint string
	http     *http.Client
	// The spool has compressed lines, see batcher; these are for requests that are not.
	unzip   *gzip.Reader
	zip     compressor
	lastKey string // the last secret that could be read
	failed  bool   // the last request had no reply
}

func newClient(o Options, base *url.URL, config *tls.Config) *client {
	return &client{
		options: o, endpoint: o.endpoint(base),
		http: &http.Client{
			Transport: o.transport(config),
			// A redirect could send the secrets to another host; its address is in the status instead.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// transport makes the connections.
func (o *Options) transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, OnProxyConnectResponse: proxyReply, TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConns: 1, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: maxReplyBytes,
		// A connection that a NAT or a firewall has forgotten is not used for the next request.
		HTTP2: &http.HTTP2Config{SendPingTimeout: o.Timeout / 2, PingTimeout: o.Timeout / 2},
	}
}

// renew reads the certificates again after a request without a reply: one that has expired, or whose authority the store has changed, is
// replaced in its file. If they cannot be read, as while they are replaced, the last ones are used.
func (c *client) renew() {
	if !c.failed || c.options.CAFile+c.options.CertFile == "" {
		return
	}
	if config, err := c.options.tls(); err == nil {
		c.close()
		c.http.Transport = c.options.transport(config)
	}
}

// proxyReply names the proxy that refuses a connection to the store: the error of net/http is the text of the status alone.
func proxyReply(_ context.Context, proxy *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the proxy %s refuses the connection: status %s; set HTTPS_PROXY or NO_PROXY", proxy.Host, response.Status)
}

// close closes idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// write sends lines, or the same lines compressed if the caller has them. It keeps neither.
func (c *client) write(ctx context.Context, lines, compressed []byte) reply {
	body := lines
	if c.options.Gzip {
		if body = compressed; body == nil {
			body = c.zip.compress(lines)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	content := &requestBody{Reader: bytes.NewReader(body), closed: make(chan struct{})}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, content)
	if err != nil {
		return reply{result: resultUnreachable, reason: errtext.Words(err)}
	}
	request.ContentLength = int64(len(body))
	c.renew()
	r := c.do(request)
	c.failed = r.result == resultUnreachable
	cancel()
	<-content.closed
	return r
}

// requestBody tells when it is no longer read: a store can reply before it has read the request.
type requestBody struct {
	*bytes.Reader
	once   sync.Once
	closed chan struct{}
}

// Close is called by the transport, always (http.RoundTripper).
func (b *requestBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// do sends a request and reads its reply.
func (c *client) do(request *http.Request) reply {
	request.Header.Set("Content-Type", "text/plain; charset=utf-8")
	request.Header.Set("User-Agent", "oneway")
	if c.options.Gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	c.authorize(request)
	response, err := c.http.Do(request)
	if err != nil {
		return reply{result: resultUnreachable, reason: c.explain(err)}
	}
	defer response.Body.Close()
	// What is read of a reply that ends early is enough: the status decides.
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes))
	if err != nil && len(text) == 0 && response.StatusCode >= http.StatusBadRequest {
		return reply{result: resultUnreachable, reason: "read the reply: " + c.explain(err)}
	}
	r := classify(response.StatusCode, response.Header, text, time.Now())
	if to := response.Header.Get("Location"); to != "" && response.StatusCode < http.StatusBadRequest {
		r.reason = fmt.Sprintf("status %d: the store redirects to another address, which is not followed; configure it as url", response.StatusCode)
	}
	return r
}

// authorize adds the secret. A file that cannot be read, as while it is replaced, leaves the last secret in use.
func (c *client) authorize(request *http.Request) {
	o := &c.options
	file := o.TokenFile + o.PasswordFile // one of them
	if file == "" {
		return
	}
	if keys, err := keyfile.Load(file); err == nil {
		c.lastKey = string(keys[0])
	}
	switch {
	case o.Username != "" && o.Version == 2: // of InfluxDB 1.8
		request.Header.Set("Authorization", "Token "+o.Username+":"+c.lastKey)
	case o.Username != "":
		request.SetBasicAuth(o.Username, c.lastKey)
	case o.Version == 2:
		request.Header.Set("Authorization", "Token "+c.lastKey)
	default:
		request.Header.Set("Authorization", "Bearer "+c.lastKey)
	}
}

// explain is an error without the address of the request. A part of it can be the store's.
func (c *client) explain(err error) string {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no complete reply within %v", c.options.Timeout)
	}
	if errors.Is(err, io.EOF) {
		return "the store closed the connection without a reply: check url (http or https, the port); a firewall may have closed it"
	}
	return clip(errtext.Words(hostport.WithRemedy(err)))
}

// expand appends the lines of a record.
func (c *client) expand(to, record []byte) (lines []byte, err error) {
	from := bytes.NewReader(record)
	if c.unzip == nil {
		c.unzip, err = gzip.NewReader(from)
	} else {
		err = c.unzip.Reset(from)
	}
	b := bytes.NewBuffer(to)
	if err == nil {
		_, err = b.ReadFrom(c.unzip)
	}
	return b.Bytes(), err
}
