// Package block lends memory for data on their way: from sockets, and to what
// a download is written to.
//
// Of many connections and requests few have data at hand at a time. Who holds a
// block while waiting for data holds it for nothing.
package block

import "sync"

// Size of a block, in bytes.
const Size = 256 << 10

// Block is memory of unknown content.
type Block [Size]byte

var free = sync.Pool{New: func() any { return new(Block) }}

// Get returns a block, of which nobody else knows.
func Get() *Block { return free.Get().(*Block) }

// Put gives a block back, which is not to be used any more.
func Put(b *Block) { free.Put(b) }
