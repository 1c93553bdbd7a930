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
	// askedAgain is how long a server may be silent until it is asked again by UDP,
	// and twice as long each time.
	askedAgain = 500 * time.Millisecond
	// betterWait is how long the others may take once a server has answered, but not with
	// an address for this link. failedWait is the same once a server has failed.
	betterWait = 250 * time.Millisecond
	failedWait = 2 * time.Second
	// mostMessage bounds an answer, in bytes: room for 100 addresses.
	mostMessage = 4096
	// headerLength is that of a DNS message (RFC 1035 4.1.1).
	headerLength = 12
)

// quality says how good an answer is: the highest is used.
type quality int

const (
	// isFailure: the server failed, is not there, or does not want to answer.
	isFailure quality = iota
	noNameElsewhere
	noAddressElsewhere
	noName
	noAddress
	addressElsewhere
	isAddress
)

// reply is what a server says.
type reply struct {
	quality quality
	message []byte
	// ttl is for how long it holds.
	ttl time.Duration
	err error
}

func (r reply) hasAddress() bool { return r.quality >= addressElsewhere }

// inquire asks all servers at once. An address that a server of the link knows is taken
// at once. Else the others may do better for a short time: names may be known to
// some only (split horizon), and providers' servers refuse who comes from elsewhere.
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

// wait is a time that may not have begun.
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

// ask asks one server: by TCP where the answer does not fit into a datagram, and without
// EDNS where the server does not know that (RFC 6891 7).
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

// byUDP asks until an answer comes, and ignores what does not answer this question.
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

// byTCP is RFC 7766: a length goes before each message.
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

// dial connects to the server until stop, or the end of ctx.
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

// withNewID is the query with an ID that nobody can guess.
func withNewID(query []byte) []byte {
	query = slices.Clone(query)
	_, _ = rand.Read(query[:2]) // It never fails.
	return query
}

// withoutEDNS is the query without what follows its question.
func withoutEDNS(query []byte) []byte {
	end := headerLength
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	end = min(end+5, len(query)) // The end of the name, type and class.
	plain := slices.Clone(query[:end])
	plain[10], plain[11] = 0, 0
	return plain
}

// code is the response code, without EDNS' part of it.
func code(message []byte) dnsmessage.RCode { return dnsmessage.RCode(message[3] & 0xf) }

func isTruncated(message []byte) bool { return message[2]&2 != 0 }

// question reads the only question of a message.
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

// mostTTL and mostNegative are for how long an answer is used at most: one with
// addresses, and one without (RFC 2308 5).
const (
	mostTTL      = 24 * time.Hour
	mostNegative = time.Minute
)

// judge says what an answer is worth.
func (s nameServer) judge(message []byte) reply {
	header, q, p, err := question(message)
	if err != nil {
		return reply{err: err}
	}
	message[2] &^= 2 // Nothing more of it can be had.
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
		return r // It only refers to others.
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

// negativeTTL is in the zone's SOA record; 0 without one.
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
