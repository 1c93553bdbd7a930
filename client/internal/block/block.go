// Package block lends memory for bytes between sockets and outputs.
//
// Of many connections and requests, few have bytes at a time. So nobody should hold a block while
// waiting for bytes.
package block

import "sync"

// Size of a block, in bytes.
const Size = 256 << 10

// Block is memory of unknown content.
type Block [Size]byte

var free = sync.Pool{New: func() any { return new(Block) }}

// Get returns a block that nobody else uses.
func Get() *Block { return free.Get().(*Block) }

// Put gives a block back. The caller must not use it any more.
func Put(b *Block) { free.Put(b) }
