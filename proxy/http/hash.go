package http

import (
	"nginxoracle/proxy/elog"
	"nginxoracle/proxy/ev"
	"nginxoracle/proxy/module"
)

// HashLimits are the limits that a configuration sets on one of nginx's hash tables. Go's
// maps need none, but nginx refuses or warns when its table cannot keep them, and that is
// seen (src/core/ngx_hash.c, ngx_hash_init).
type HashLimits struct {
	Name            string // map_hash, server_names_hash, …
	Max, BucketSize int
	Unused          int // names that count for the table's size and are not in it
}

const (
	cacheLine = 64
	wordSize  = 8
)

// AlignLine rounds a bucket size up to cache lines, as nginx does before it uses one.
func AlignLine(n int) int { return (n + cacheLine - 1) &^ (cacheLine - 1) }

func hashElement(key string) int { return wordSize + (len(key)+2+wordSize-1)&^(wordSize-1) }

// Check says what nginx would say of a table with these keys.
func (h HashLimits) Check(cf *module.Conf, keys []string) error {
	_, err := h.Size(cf, keys)
	return err
}

// HashKey is ngx_hash over the bytes of a name that may count.
func HashKey(name []byte, counts func(byte) bool) (hash uint64) {
	for _, c := range name {
		if counts(c) {
			hash = hash*31 + uint64(c)
		}
	}
	return hash
}

// Size is how many buckets nginx's table with these keys has. It says what nginx would say of the table.
func (h HashLimits) Size(cf *module.Conf, keys []string) (int, error) {
	log := cf.Log()
	if h.Max == 0 {
		log.Err(elog.Emerg, nil, "could not build %s, you should increase %s_max_size: %d", h.Name, h.Name, h.Max)
		return 0, module.ErrReported
	}
	if uint64(h.BucketSize) > 65536-cacheLine {
		log.Err(elog.Emerg, nil, "could not build %s, too large %s_bucket_size: %d", h.Name, h.Name, h.BucketSize)
		return 0, module.ErrReported
	}
	for _, k := range keys {
		if h.BucketSize < hashElement(k)+wordSize {
			log.Err(elog.Emerg, nil, "could not build %s, you should increase %s_bucket_size: %d", h.Name, h.Name, h.BucketSize)
			return 0, module.ErrReported
		}
	}
	hashes := make([]uint64, len(keys))
	for i, k := range keys {
		hashes[i] = HashKey([]byte(k), func(byte) bool { return true })
	}
	bucket := h.BucketSize - wordSize
	all := len(keys) + h.Unused
	size := max(all/(bucket/(2*wordSize)), 1)
	if h.Max > 10000 && all > 0 && h.Max/all < 100 {
		size = h.Max - 1000
	}
	if !ev.Reserve(int64(uint64(h.Max)*2), log) {
		return 0, module.ErrReported
	}
	var test []int
	for ; size <= h.Max; size++ {
		if size > len(test) {
			test = make([]int, min(2*size, h.Max))
		}
		if fits(test[:size], hashes, keys, bucket) {
			return size, nil
		}
	}
	log.Err(elog.Warn, nil, "could not build optimal %s, you should increase either %s_max_size: %d or %s_bucket_size: %d; ignoring %s_bucket_size",
		h.Name, h.Name, h.Max, h.Name, h.BucketSize, h.Name)
	return h.Max, nil
}

func fits(test []int, hashes []uint64, keys []string, bucket int) bool {
	clear(test)
	for i, k := range keys {
		t := &test[hashes[i]%uint64(len(test))]
		*t += hashElement(k)
		if *t > bucket {
			return false
		}
	}
	return true
}
