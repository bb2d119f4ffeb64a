package embedded

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// PortTakenError means that something else listens on the requested port.
type PortTakenError struct {
	// Port is the requested port.
	Port int
	// Flag is the command line flag that chooses another port, with its dashes.
	Flag string
}

// Error names the port, the flag and the remedy.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d is taken; choose another with %s, or stop what listens there", e.Port, e.Flag)
}

// listen listens on address (host:port; no host means loopback, port 0 a free port). Its error names flag if the port
// is taken.
func listen(address, flag string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = loopback
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		// The error carries the resolved address, so a named port is a number here.
		if op, ok := errors.AsType[*net.OpError](err); ok {
			if addr, ok := op.Addr.(*net.TCPAddr); ok {
				return nil, &PortTakenError{Port: addr.Port, Flag: flag}
			}
		}
	}
	return listener, err
}

// dialable returns the address at which this machine reaches a listener. For a listener on all interfaces, that is
// loopback.
func dialable(addr *net.TCPAddr) string {
	ip := addr.IP
	if ip.IsUnspecified() {
		ip = net.ParseIP(loopback)
	}
	return (&net.TCPAddr{IP: ip, Port: addr.Port}).String()
}

// ports holds the addresses that the services will listen on. The Temporal server opens its listeners itself. So ports
// holds all of them open together and releases them just before that. Start retries with other ports if another process
// takes one in between.
type ports struct {
	frontend, history, matching, worker *net.TCPAddr
	held                                []net.Listener
}

// holdPorts takes the frontend's address and a free loopback port for each internal service.
func holdPorts(frontend string) (*ports, error) {
	p := &ports{}
	take := func(address string) (*net.TCPAddr, error) {
		listener, err := listen(address, "--port")
		if err != nil {
			return nil, errors.Join(err, p.release())
		}
		p.held = append(p.held, listener)
		return listener.Addr().(*net.TCPAddr), nil
	}
	var err error
	if p.frontend, err = take(frontend); err != nil {
		return nil, err
	}
	for _, service := range []**net.TCPAddr{&p.history, &p.matching, &p.worker} {
		if *service, err = take(net.JoinHostPort(loopback, "0")); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// release releases the ports. A second call is a no-op.
func (p *ports) release() error {
	var errs []error
	for _, listener := range p.held {
		errs = append(errs, listener.Close())
	}
	p.held = nil
	return errors.Join(errs...)
}
