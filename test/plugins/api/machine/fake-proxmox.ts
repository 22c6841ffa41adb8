import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { selfSigned } from '../../../wire/upstream/self-signed.js'

const GIB = 1024 ** 3

/** How the host behaves besides. */
export type Mischief = 'stall' | 'stall-body' | 'cut' | 'html' | 'endless' | 'echo' | 'wrong-shape'

/** The one token that it knows. */
export const TOKEN = { user: 'svc@pve', token_name: 'gateway', token_value: '4f6f3c52-6d1e-4d0e-9f0e-5a1f3b2c7d88' } as const
export const AUTHORIZATION = `PVEAPIToken=${TOKEN.user}!${TOKEN.token_name}=${TOKEN.token_value}`

interface Privileges {
  /** Sys.Audit on the nodes; without it `/nodes` has names alone, and the rest is refused. */
  audit: boolean
  /** VM.Audit; without it the lists of guests are empty. */
  vmAudit: boolean
}

/** A host with Proxmox VE as its API speaks: pveproxy's statuses, reasons and shapes, on HTTPS with its own certificate. */
export class FakeProxmox {
  readonly port: number
  readonly settings: { readonly host: string, readonly port: number } & typeof TOKEN
  /** Paths below `/api2/json` that were asked for, also by those who were refused. */
  readonly asked: string[] = []
  readonly sockets = new Set<Duplex>()
  readonly privileges: Privileges = { audit: true, vmAudit: true }
  mischief: Mischief | null = null
  /** Requests that have no answer yet. */
  pending = 0
  nodes: ReadonlyArray<{ readonly node: string, readonly status: 'online' | 'offline', readonly local: boolean }> = [
    { node: 'pve', status: 'online', local: true }
  ]

  close: () => Promise<void>

  private constructor (port: number, close: () => Promise<void>) {
    this.port = port
    this.settings = { host: '127.0.0.1', port, ...TOKEN }
    this.close = close
  }

  static async start (t: Test): Promise<FakeProxmox> {
    const server = createServer(selfSigned('127.0.0.1'))
    await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
    let isOpen = true
    const fake = new FakeProxmox((server.address() as AddressInfo).port, async () => {
      if (!isOpen) return
      isOpen = false
      server.closeAllConnections()
      for (const socket of fake.sockets) socket.destroy()
      await new Promise<void>(resolve => { server.close(() => resolve()) })
    })
    server.on('connection', socket => {
      fake.sockets.add(socket)
      socket.once('close', () => fake.sockets.delete(socket))
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      fake.pending++
      response.once('close', () => { fake.pending-- })
      fake.#answer(request, response)
    })
    t.teardown(fake.close)
    return fake
  }

  #answer (request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '').replace(/^\/api2\/json/, '')
    this.asked.push(path)
    if (this.mischief !== null) return this.#misbehave(this.mischief, request, response)
    const refuse = (status: number, reason: string): void => {
      response.writeHead(status, reason, { 'content-type': 'application/json;charset=UTF-8' }).end('{"data":null}')
    }
    const { authorization } = request.headers
    if (authorization === undefined) return refuse(401, 'No ticket')
    const [, user, name] = /^PVEAPIToken=(\S+?)!(\S+?)=/.exec(authorization) ?? []
    if (user !== TOKEN.user) return refuse(401, `no such user ('${user}')`)
    if (name !== TOKEN.token_name) return refuse(401, `no such token '${name}' for user '${user}'`)
    if (authorization !== AUTHORIZATION) return refuse(401, 'invalid token value!')
    if (request.method !== 'GET') return refuse(501, `Method '${request.method} ${path}' not implemented`)
    const [, node, what] = /^\/nodes\/([^/]+)\/(status|lxc|qemu)$/.exec(path) ?? []
    if (node !== undefined) {
      const known = this.nodes.find(each => each.node === decodeURIComponent(node))
      if (known === undefined) return refuse(500, `hostname lookup '${node}' failed - failed to get address info for: ${node}: Name or service not known`)
      if (known.status === 'offline') return refuse(595, 'No route to host')
      if (what === 'status' && !this.privileges.audit) return refuse(403, `Permission check failed (/nodes/${node}, Sys.Audit)`)
    } else if (path === '/cluster/status' && !this.privileges.audit) {
      return refuse(403, 'Permission check failed (/, Sys.Audit)')
    } else if (path !== '/nodes' && path !== '/cluster/status') {
      return refuse(501, `Method 'GET ${path}' not implemented`)
    }
    response.writeHead(200, { 'content-type': 'application/json;charset=UTF-8' }).end(JSON.stringify({ data: this.#data(path, what) }))
  }

  #data (path: string, what: string | undefined): unknown {
    if (path === '/nodes') {
      return this.nodes.map(({ node, status }) => ({
        node, status, type: 'node', id: `node/${node}`, ssl_fingerprint: 'AA:BB', level: '',
        ...(this.privileges.audit && status === 'online' ? { cpu: 0.0525, maxcpu: 32, mem: 40 * GIB, maxmem: 128 * GIB, uptime: 86_400 } : {})
      }))
    }
    if (path === '/cluster/status') {
      return [
        { type: 'cluster', id: 'cluster', name: 'home', nodes: this.nodes.length, quorate: 1, version: 4 },
        ...this.nodes.map(({ node, status, local }, i) => ({ type: 'node', id: `node/${node}`, name: node, nodeid: i + 1, online: status === 'online' ? 1 : 0, local: local ? 1 : 0, ip: '192.0.2.1' }))
      ]
    }
    if (what === 'status') {
      return {
        memory: { total: 128 * GIB, used: 40 * GIB, free: 88 * GIB }, cpu: 0.05254, cpuinfo: { cpus: 32, cores: 16, sockets: 1, model: 'x' }, uptime: 86_400,
        loadavg: ['0.52', '0.40', '0.31'], wait: 0, pveversion: 'pve-manager/8.4.1/x', kversion: 'Linux 6.8.12-9-pve'
      }
    }
    if (!this.privileges.vmAudit) return []
    return what === 'lxc'
      ? [{ vmid: '101', name: 'gateway', status: 'running', type: 'lxc', maxmem: 64 * GIB, mem: 12 * GIB, cpus: 16, cpu: 0.123456, uptime: 9000 }]
      : [
          { vmid: 100, name: 'web', status: 'running', maxmem: 8 * GIB, mem: 3 * GIB, cpus: 4, cpu: 0.01, uptime: 9000, pid: 7 },
          { vmid: 102, name: 'spare', status: 'stopped', maxmem: 4 * GIB, mem: 0, cpus: 2, cpu: 0, uptime: 0 },
          { vmid: 9000, name: 'debian-template', status: 'stopped', maxmem: 2 * GIB, mem: 0, cpus: 1, cpu: 0, template: 1 }
        ]
  }

  #misbehave (mischief: Mischief, request: IncomingMessage, response: ServerResponse): void {
    const { authorization } = request.headers
    switch (mischief) {
      case 'stall': return
      case 'stall-body': return void response.writeHead(200, { 'content-type': 'application/json' }).write('{"data":[')
      case 'cut': return void request.socket.destroy()
      case 'html': return void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>router login</html>')
      case 'wrong-shape': return void response.writeHead(200).end('{"data":{"node":"pve"}}')
      case 'echo': return void response.writeHead(500, `bad ${authorization}`, { 'x-auth': authorization! }).end(JSON.stringify({ data: null, message: authorization }))
      case 'endless': {
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
          if (!response.destroyed) response.once('drain', more)
        }
        return void more()
      }
    }
  }
}
