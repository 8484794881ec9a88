// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later

// A server that sends back what it gets, and clients of it, with sockets as Go's runtime makes them:
//
//	goecho serve IP:PORT			prints "ready"
//	goecho echo IP:PORT CONNECTIONS BYTES	each connection sends so many, says that it sends no
//						more, and looks at each byte that comes; prints the
//						first one's two ends, then "ok"
//	goecho dial IP:PORT			prints why it was not opened
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "goecho:", err)
		os.Exit(1)
	}
}

func serve(address string) {
	listener, err := net.Listen("tcp", address)
	must(err)
	fmt.Println("ready")
	for {
		one, err := listener.Accept()
		must(err)
		go func() {
			io.Copy(one, one)
			one.(*net.TCPConn).CloseWrite()
			one.Close()
		}()
	}
}

func at(stream, position int) byte { return byte(position*7%251 + stream) }

func talk(address string, stream, size int) {
	one, err := net.DialTimeout("tcp", address, time.Minute)
	must(err)
	go func() {
		bytes := make([]byte, size)
		for i := range bytes {
			bytes[i] = at(stream, i)
		}
		_, err := one.Write(bytes)
		must(err)
		must(one.(*net.TCPConn).CloseWrite())
	}()
	got, err := io.ReadAll(one)
	must(err)
	if len(got) != size {
		must(fmt.Errorf("%d of %d bytes came", len(got), size))
	}
	for i, b := range got {
		if b != at(stream, i) {
			must(fmt.Errorf("byte %d is %d", i, b))
		}
	}
	if stream == 0 {
		fmt.Println(one.LocalAddr(), one.RemoteAddr())
	}
	one.Close()
}

func echo(address string, connections, size int) {
	var all sync.WaitGroup
	for i := 0; i < connections; i++ {
		all.Add(1)
		go func(stream int) {
			defer all.Done()
			talk(address, stream, size)
		}(i)
	}
	all.Wait()
	fmt.Println("ok")
}

func main() {
	switch words := os.Args[1:]; {
	case len(words) == 2 && words[0] == "serve":
		serve(words[1])
	case len(words) == 4 && words[0] == "echo":
		connections, err := strconv.Atoi(words[2])
		must(err)
		size, err := strconv.Atoi(words[3])
		must(err)
		echo(words[1], connections, size)
	case len(words) == 2 && words[0] == "dial":
		_, err := net.DialTimeout("tcp", words[1], time.Minute)
		fmt.Println(err)
	default:
		must(fmt.Errorf("goecho serve|echo|dial IP:PORT"))
	}
}
