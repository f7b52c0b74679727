package auth_basic

import (
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"strings"

	"github.com/GehirnInc/crypt"
	"github.com/GehirnInc/crypt/md5_crypt"
	"github.com/GehirnInc/crypt/sha256_crypt"
	"github.com/GehirnInc/crypt/sha512_crypt"
	"golang.org/x/crypto/bcrypt"

	"nginxoracle/proxy/http"
)

// verify compares a password with a hash as nginx's own forms and the system's crypt() have it;
// known is false for a form that is not computed here (src/core/ngx_crypt.c).
func verify(password, hash string) (ok, known bool) {
	var c crypt.Crypter
	switch {
	case strings.HasPrefix(hash, "$apr1$"):
		return apr1(password, hash) == hash, true
	case strings.HasPrefix(hash, "{PLAIN}"):
		return password == hash[len("{PLAIN}"):], true
	case strings.HasPrefix(hash, "{SSHA}"):
		return ssha(password, hash) == hash, true
	case strings.HasPrefix(hash, "{SHA}"):
		sum := sha1.Sum([]byte(password))
		return "{SHA}"+base64.StdEncoding.EncodeToString(sum[:]) == hash, true
	case strings.HasPrefix(hash, "$1$"):
		c = md5_crypt.New()
	case strings.HasPrefix(hash, "$5$"):
		c = sha256_crypt.New()
	case strings.HasPrefix(hash, "$6$"):
		c = sha512_crypt.New()
	case strings.HasPrefix(hash, "$2a$"), strings.HasPrefix(hash, "$2b$"), strings.HasPrefix(hash, "$2y$"):
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil, true
	case strings.HasPrefix(hash, "$"), strings.HasPrefix(hash, "_"), isDES(hash):
		return false, false
	default:
		// crypt() fails with a text that is no hash, or makes one of another length.
		return false, true
	}
	// The package takes the whole of what follows "rounds=" for the salt.
	end := strings.LastIndexByte(hash, '$')
	made, err := c.Generate([]byte(password), []byte(hash[:end]))
	return err == nil && made == hash, true
}

// isDES reports the form of the oldest crypt(): 13 characters of its alphabet.
func isDES(hash string) bool {
	return len(hash) == 13 && strings.Trim(hash, alphabet) == ""
}

const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// ssha is "{SSHA}" with base64 of the SHA-1 of password and salt, and the salt.
func ssha(password, hash string) string {
	raw, ok := http.DecodeBase64(nil, []byte(hash[len("{SSHA}"):]))
	var salt []byte
	if ok && len(raw) >= sha1.Size {
		salt = raw[sha1.Size:]
	}
	sum := sha1.Sum(append([]byte(password), salt...))
	return "{SSHA}" + base64.StdEncoding.EncodeToString(append(sum[:], salt...))
}

// apr1 is Apache's MD5 crypt with a hash's salt.
func apr1(password, hash string) string {
	const magic = "$apr1$"
	salt, _, _ := strings.Cut(hash[len(magic):], "$")
	salt = salt[:min(len(salt), 8)]

	final := md5.Sum([]byte(password + salt + password))
	b := []byte(password + magic + salt)
	for n := len(password); n > 0; n -= md5.Size {
		b = append(b, final[:min(n, md5.Size)]...)
	}
	for i := len(password); i > 0; i >>= 1 {
		if i&1 != 0 {
			b = append(b, 0)
		} else {
			b = append(b, password[0])
		}
	}
	final = md5.Sum(b)
	for i := range 1000 {
		b = b[:0]
		if i&1 != 0 {
			b = append(b, password...)
		} else {
			b = append(b, final[:]...)
		}
		if i%3 != 0 {
			b = append(b, salt...)
		}
		if i%7 != 0 {
			b = append(b, password...)
		}
		if i&1 != 0 {
			b = append(b, final[:]...)
		} else {
			b = append(b, password...)
		}
		final = md5.Sum(b)
	}
	out := []byte(magic + salt + "$")
	put := func(v uint32, n int) {
		for ; n > 0; n-- {
			out = append(out, alphabet[v&0x3f])
			v >>= 6
		}
	}
	for _, at := range [][3]int{{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}} {
		put(uint32(final[at[0]])<<16|uint32(final[at[1]])<<8|uint32(final[at[2]]), 4)
	}
	put(uint32(final[11]), 2)
	return string(out)
}
