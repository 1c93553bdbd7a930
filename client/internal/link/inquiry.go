package link

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// askedAgain is how long a server may be silent before the UDP query is repeated. It
	// doubles each time.
	askedAgain = 500 * time.Millisecond
	// betterWait is how long to wait for the other servers after an answer without an address
	// for this link. failedWait is the same after a server has failed.
	betterWait = 250 * time.Millisecond
	failedWait = 2 * time.Second
	// mostMessage limits an answer, in bytes: room for 100 addresses.
	mostMessage = 4096
	// headerLength is the length of a DNS header (RFC 1035 4.1.1).
	headerLength = 12
)

// quality rates an answer. The answer with the highest quality is used.
type quality int

const (
	// isFailure means that the server failed, is absent, or refuses to answer.
	isFailure quality = iota
	noNameElsewhere
	noAddressElsewhere
	noName
	noAddress
	addressElsewhere
	isAddress
)

// reply is the outcome of a query to one server.
type reply struct {
	quality quality
	message []byte
	// ttl is how long the answer is valid.
	ttl time.Duration
	err error
}

func (r reply) hasAddress() bool { return r.quality >= addressElsewhere }

// inquire asks all servers at once. It takes an address from a server of this link at once.
// After any other answer it waits briefly for better ones. Some servers know names that others
// do not (split horizon), and a provider's server refuses clients of other networks.
func inquire(ctx context.Context, servers []nameServer, query []byte) reply {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	replies := make(chan reply, len(servers))
	for _, server := range servers {
		asking.Go(func() { replies <- server.ask(ctx, query) })
	}
	best, failures := reply{}, []error{}
	failed, better := newWait(failedWait), newWait(betterWait)
	defer failed.stop()
	defer better.stop()
	for range servers {
		select {
		case one := <-replies:
			failures = append(failures, one.err)
			if best.message == nil || one.quality > best.quality {
				best = one
			}
		case <-failed.over():
			return best
		case <-better.over():
			return best
		case <-ctx.Done():
			if best.message == nil {
				best.err = ctx.Err()
			}
			return best
		}
		switch {
		case best.quality == isAddress:
			return best
		case best.quality > isFailure:
			better.start()
		default:
			failed.start()
		}
	}
	if best.message == nil {
		best.err = errors.Join(failures...)
	}
	return best
}

// wait is a timer that start starts once.
type wait struct {
	length time.Duration
	timer  *time.Timer
}

func newWait(length time.Duration) *wait { return &wait{length: length} }

func (w *wait) start() {
	if w.timer == nil {
		w.timer = time.NewTimer(w.length)
	}
}

func (w *wait) over() <-chan time.Time {
	if w.timer == nil {
		return nil
	}
	return w.timer.C
}

func (w *wait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// ask asks one server. It uses TCP if the answer does not fit into a datagram, and no EDNS if
// the server does not support EDNS (RFC 6891 7).
func (s nameServer) ask(ctx context.Context, query []byte) reply {
	message, err := s.byUDP(ctx, query)
	if err == nil && code(message) == dnsmessage.RCodeFormatError {
		if plain := withoutEDNS(query); len(plain) < len(query) {
			message, err = s.byUDP(ctx, plain)
		}
	}
	if err == nil && isTruncated(message) {
		if whole, failed := s.byTCP(ctx, query); failed == nil {
			message = whole
		}
	}
	if err != nil {
		return reply{err: err}
	}
	return s.judge(message)
}

// byUDP repeats the query until an answer arrives. It ignores answers to other queries.
func (s nameServer) byUDP(ctx context.Context, query []byte) ([]byte, error) {
	conn, stop, err := s.dial(ctx, "udp")
	if err != nil {
		return nil, err
	}
	defer stop()
	query = withNewID(query)
	buffer := make([]byte, mostMessage)
	for patience := askedAgain; ; patience *= 2 {
		if _, err := conn.Write(query); err != nil {
			return nil, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		for {
			n, err := conn.Read(buffer)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, err
			}
			if answers(buffer[:n], query) {
				return slices.Clone(buffer[:n]), nil
			}
		}
	}
}

// byTCP asks over TCP, where each message follows its length (RFC 7766).
func (s nameServer) byTCP(ctx context.Context, query []byte) ([]byte, error) {
	conn, stop, err := s.dial(ctx, "tcp")
	if err != nil {
		return nil, err
	}
	defer stop()
	query = withNewID(query)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return nil, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, min(mostMessage, binary.BigEndian.Uint16(length[:])))
	if _, err := io.ReadFull(conn, message); err != nil {
		return nil, err
	}
	if !answers(message, query) {
		return nil, errors.New("the name server answers another question")
	}
	return message, nil
}

// dial connects to the server. The connection ends with stop or with ctx.
func (s nameServer) dial(ctx context.Context, network string) (conn net.Conn, stop func(), err error) {
	dialer := new(net.Dialer)
	if s.device != "" {
		dialer = Dialer{Device: s.device}.bound()
	}
	if conn, err = dialer.DialContext(ctx, network, s.address.String()); err != nil {
		return nil, nil, err
	}
	ended := context.AfterFunc(ctx, func() { conn.Close() })
	return conn, func() { ended(); conn.Close() }, nil
}

// withNewID returns the query with an unpredictable ID.
func withNewID(query []byte) []byte {
	query = slices.Clone(query)
	_, _ = rand.Read(query[:2]) // This never fails.
	return query
}

// withoutEDNS returns the query without everything after its question.
func withoutEDNS(query []byte) []byte {
	end := headerLength
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	end = min(end+5, len(query)) // Skips the end of the name, type and class.
	plain := slices.Clone(query[:end])
	plain[10], plain[11] = 0, 0
	return plain
}

// code returns the response code without the bits of EDNS.
func code(message []byte) dnsmessage.RCode { return dnsmessage.RCode(message[3] & 0xf) }

func isTruncated(message []byte) bool { return message[2]&2 != 0 }

// question parses the only question of a message.
func question(message []byte) (header dnsmessage.Header, q dnsmessage.Question, p dnsmessage.Parser, err error) {
	if header, err = p.Start(message); err != nil {
		return header, q, p, err
	}
	if q, err = p.Question(); err != nil {
		return header, q, p, err
	}
	return header, q, p, p.SkipAllQuestions()
}

// answers reports whether a message is a response to the query.
func answers(message, query []byte) bool {
	header, answered, _, err := question(message)
	if err != nil {
		return false
	}
	asked, wanted, _, err := question(query)
	return err == nil && header.Response && header.ID == asked.ID && keyOf(answered) == keyOf(wanted)
}

// mostTTL limits the use of an answer with addresses, mostNegative that of an answer without
// (RFC 2308 5).
const (
	mostTTL      = 24 * time.Hour
	mostNegative = time.Minute
)

// judge rates an answer.
func (s nameServer) judge(message []byte) reply {
	header, q, p, err := question(message)
	if err != nil {
		return reply{err: err}
	}
	message[2] &^= 2 // Clears TC: no more of the answer can be had.
	r := reply{quality: isFailure, message: message, ttl: mostTTL}
	found := false
	for {
		answer, err := p.AnswerHeader()
		if err == dnsmessage.ErrSectionDone {
			break
		}
		if err != nil || p.SkipAnswer() != nil {
			return r
		}
		r.ttl = min(r.ttl, time.Duration(answer.TTL)*time.Second)
		found = found || answer.Type == q.Type
	}
	switch {
	case header.RCode == dnsmessage.RCodeNameError:
		r.quality, r.ttl = noName, negativeTTL(&p)
	case header.RCode != dnsmessage.RCodeSuccess:
		return r
	case found:
		r.quality = isAddress
	case !header.Authoritative && !header.RecursionAvailable:
		return r // The answer only refers to other servers.
	default:
		r.quality, r.ttl = noAddress, negativeTTL(&p)
	}
	if s.elsewhere {
		switch r.quality {
		case isAddress:
			r.quality = addressElsewhere
		case noAddress:
			r.quality = noAddressElsewhere
		case noName:
			r.quality = noNameElsewhere
		}
	}
	return r
}

// negativeTTL returns the TTL in the zone's SOA record, 0 without such a record.
func negativeTTL(p *dnsmessage.Parser) time.Duration {
	for {
		header, err := p.AuthorityHeader()
		if err != nil {
			return 0
		}
		if header.Type != dnsmessage.TypeSOA {
			if p.SkipAuthority() != nil {
				return 0
			}
			continue
		}
		zone, err := p.SOAResource()
		if err != nil {
			return 0
		}
		return min(mostNegative, time.Duration(min(header.TTL, zone.MinTTL))*time.Second)
	}
}
