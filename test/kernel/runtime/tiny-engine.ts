/**
 * A small HTTP engine for `node -e`, the same in a container and as a process.
 * Environment: PORT, HOST, STUBBORN=1 (ignores SIGTERM), EXIT_CODE (ends at once with it), SAY (printed first),
 * MORE (a further port, the same there).
 * Requests: /env, /pid, /say?text=…&times=N (stdout), /complain?text=… (stderr), /exit?code=N, /spawn?detached=1.
 */
export const TINY_ENGINE = `
const http = require('http'), { spawn } = require('child_process')
const { PORT, HOST, STUBBORN, EXIT_CODE, SAY, MORE } = process.env
if (SAY) process.stdout.write(SAY + '\\n')
if (EXIT_CODE) process.exit(Number(EXIT_CODE))
process.on('SIGTERM', () => {
  process.stdout.write('asked to stop\\n')
  if (!STUBBORN) process.exit(0)
})
const answer = (req, res) => {
  const { pathname, searchParams: q } = new URL(req.url, 'http://engine')
  if (pathname === '/say') process.stdout.write(q.get('text').repeat(Number(q.get('times') || 1)) + '\\n')
  if (pathname === '/complain') process.stderr.write(q.get('text') + '\\n')
  let said = process.env
  if (pathname === '/spawn') {
    const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'],
      { detached: q.get('detached') === '1', stdio: 'ignore' })
    said = { pid: child.pid }
  }
  if (pathname === '/pid') said = { pid: process.pid }
  res.setHeader('connection', 'close')
  res.end(JSON.stringify(said), () => { if (pathname === '/exit') process.exit(Number(q.get('code'))) })
}
if (MORE) http.createServer(answer).listen(Number(MORE), HOST)
http.createServer(answer).listen(Number(PORT), HOST, () => process.stdout.write('ready\\n'))
`

/** How it is told its further port. */
export function more ({ ports = {} }: { readonly ports?: Readonly<Record<string, number>> }): Record<string, string> {
  return Object.fromEntries(Object.values(ports).map(port => ['MORE', String(port)]))
}
