import type Docker from 'dockerode'
import t from 'tap'
import { runState, toInspection } from '../../../../kernel/runtime/docker/docker-inspect.js'

interface Change {
  readonly status?: string
  readonly ports?: object | null
  readonly network?: string
  readonly labels?: Record<string, string> | null
  readonly startedAt?: string
}

function container ({ status = 'running', ports = {}, network = 'bridge', labels = { 'svc.port': '8081' }, startedAt = '2025-11-21T04:33:44.41190517Z' }: Change = {}): Docker.ContainerInspectInfo {
  return {
    Id: 'abc',
    Name: '/svc-a',
    State: { Status: status, ExitCode: 137, OOMKilled: true, StartedAt: startedAt },
    Config: { Labels: labels, Image: 'repo/name:tag' },
    HostConfig: { NetworkMode: network },
    NetworkSettings: { Ports: ports }
  } as unknown as Docker.ContainerInspectInfo
}

t.test('a running and an ended container', async t => {
  t.same(toInspection(container({ ports: { '8081/tcp': [{ HostIp: '127.0.0.1', HostPort: '8081' }] } }), '127.0.0.1'), {
    id: 'abc', name: 'svc-a', labels: { 'svc.port': '8081' }, state: 'running', exitCode: null, oomKilled: true,
    address: { host: '127.0.0.1', port: 8081 }, label: 'repo/name:tag', startedAt: Date.parse('2025-11-21T04:33:44.411Z')
  })
  t.match(toInspection(container({ status: 'exited' }), '127.0.0.1'), { state: 'exited', exitCode: 137, address: null })
  t.match(toInspection(container({ status: 'created', startedAt: '0001-01-01T00:00:00Z', labels: null }), '127.0.0.1'),
    { state: 'created', exitCode: null, startedAt: null, labels: {} })
})

t.test('the states of Docker and Podman map to created, running or exited', async t => {
  for (const [status, state] of [
    ['created', 'created'], ['configured', 'created'], ['initialized', 'created'], ['running', 'running'], ['paused', 'running'],
    ['restarting', 'running'], ['stopping', 'running'], ['exited', 'exited'], ['stopped', 'exited'], ['dead', 'exited'], ['removing', 'exited']
  ] as const) t.equal(runState(status), state, status)
})

t.test('the address is read back', async t => {
  const bound = (HostIp: string, HostPort = '8081'): object => ({ '8081/tcp': [{ HostIp, HostPort }] })
  const cases: readonly (readonly [string, Change, string, object | null])[] = [
    ['loopback', { ports: bound('127.0.0.1') }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['another loopback address', { ports: bound('127.0.0.5') }, '127.0.0.1', { host: '127.0.0.5', port: 8081 }],
    ['all addresses', { ports: bound('0.0.0.0') }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['all addresses, unsaid', { ports: bound('') }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['all addresses, six', { ports: bound('::') }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['one interface', { ports: bound('10.0.0.5') }, '127.0.0.1', { host: '10.0.0.5', port: 8081 }],
    ['another number', { ports: bound('127.0.0.1', '9999') }, '127.0.0.1', { host: '127.0.0.1', port: 9999 }],
    ['a remote engine', { ports: bound('0.0.0.0') }, 'box.lan', { host: 'box.lan', port: 8081 }],
    ['a remote engine, its loopback', { ports: bound('127.0.0.1') }, 'box.lan', { host: 'box.lan', port: 8081 }],
    ['host network', { network: 'host' }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['host network, far away', { network: 'host' }, 'box.lan', { host: 'box.lan', port: 8081 }],
    ['host network, no label', { network: 'host', labels: {} }, '127.0.0.1', null],
    ['no label: the port that is published', { labels: {}, ports: bound('127.0.0.1') }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['an image that exposes more', { ports: { '80/tcp': null, ...bound('127.0.0.1') } }, '127.0.0.1', { host: '127.0.0.1', port: 8081 }],
    ['nothing published', { ports: { '80/tcp': null } }, '127.0.0.1', null],
    ['no ports at all', { ports: null }, '127.0.0.1', null]
  ]
  for (const [title, change, host, address] of cases) t.same(toInspection(container(change), host).address, address, title)
})
