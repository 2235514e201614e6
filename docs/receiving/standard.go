package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

func isGenuine(secret, id, timestamp, signatures string, body []byte) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	age := time.Now().Unix() - seconds
	if err != nil || age > toleranceSeconds || age < -toleranceSeconds {
		return false // Somebody may be repeating a request that they recorded.
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, signature := range strings.Split(signatures, " ") {
		if hmac.Equal([]byte(expected), []byte(signature)) {
			return true
		}
	}
	return false
}

func main() {
	body, _ := io.ReadAll(os.Stdin)
	if !isGenuine(os.Getenv("WEBHOOK_SECRET"), os.Args[1], os.Args[2], os.Args[3], body) {
		os.Exit(1)
	}
}
