# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Unmodified programs on streams over Homa: a BPF program gives them to a cgroup.
. /t/tap.sh

patient ""
stream give /run/cg/ours true
if [ $? = 77 ]; then
	echo "ok 1 - streams for a cgroup # SKIP a kernel without update_socket_protocol"
	echo "1..1"
	exit 0
fi
mkdir -p /run/www
head -c 700000 /dev/urandom >/run/www/file
# They must be the same sockets at both ends: each of them is TCP's to the other.
stream give /run/cg/ours sh -c 'httpd -f -p 127.0.0.1:80 -h /run/www & server=$!
	sleep 1
	wget -q -O /run/got http://127.0.0.1/file || sleep 3 && wget -q -O /run/got http://127.0.0.1/file
	kill $server'
expect "a file by HTTP" cmp /run/www/file /run/got
expect "over Homa" [ "$(metric "" host_stream_conns)" -ge 1 ]
if command -v redis-server >/dev/null; then
	stream give /run/cg/ours sh -c 'redis-server --port 6379 --bind 127.0.0.1 --save "" >/run/redis.log 2>&1 & server=$!
		for i in 1 2 3 4 5 6 7 8 9; do redis-cli -h 127.0.0.1 ping >/run/pong 2>&1 && grep -q PONG /run/pong && break; sleep 1; done
		redis-cli -h 127.0.0.1 set key value >/run/set 2>&1
		redis-cli -h 127.0.0.1 get key >/run/value 2>&1
		redis-benchmark -h 127.0.0.1 -q -n 2000 -c 10 -t set,get >/run/bench 2>&1
		kill $server; wait $server'
	cat /run/pong /run/set /run/value /run/bench /run/redis.log | sed 's/^/# /'
	expect "redis answers" grep -q value /run/value
fi
if command -v nginx >/dev/null; then
	mkdir -p /run/ng
	cat >/run/ng/conf <<-END
		daemon off;
		master_process off;
		error_log /run/ng/error;
		pid /run/ng/pid;
		events {}
		http {
			access_log off;
			sendfile on;
			client_body_temp_path /run/ng/1;
			proxy_temp_path /run/ng/2;
			fastcgi_temp_path /run/ng/3;
			uwsgi_temp_path /run/ng/4;
			scgi_temp_path /run/ng/5;
			server { listen 127.0.0.1:81; root /run/www; }
		}
	END
	stream give /run/cg/ours sh -c 'nginx -c /run/ng/conf >/run/ng/said 2>&1 & server=$!
		for i in 1 2 3 4 5 6 7 8 9; do wget -q -O /run/got2 http://127.0.0.1:81/file && break; sleep 1; done
		kill $server; wait $server'
	cat /run/ng/said /run/ng/error | sed 's/^/# /'
	expect "a file from nginx" cmp /run/www/file /run/got2
fi
if [ -x /root/give ]; then
	before=$(metric "" host_stream_conns)
	stream give /run/cg/ours /root/give 127.0.0.1:82 >/run/go 2>&1
	cat /run/go | sed 's/^/# /'
	expect "a server and a client in Go" grep -q "done, bad 0" /run/go
	expect "over Homa, too" [ "$(metric "" host_stream_conns)" -gt "$before" ]
fi
expect "no RPC is left" rpcs_gone ""
finish
