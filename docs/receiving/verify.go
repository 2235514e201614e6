package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

func isGenuine(secret, signature string, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

func main() {
	body, _ := io.ReadAll(os.Stdin)
	if !isGenuine(os.Getenv("WEBHOOK_SECRET"), os.Args[1], body) {
		os.Exit(1)
	}
}
