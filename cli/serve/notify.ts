import { execFile } from 'node:child_process'

/**
 * Tells the service manager that started this process how far it is, where one asks for that (`Type=notify`). Node has no
 * sockets for datagrams of Unix, so systemd's own tool does it. Resolves when it was told; null, or why it could not be.
 */
export function notify (env: Readonly<Record<string, string | undefined>>, ...states: readonly string[]): Promise<string | null> {
  const { NOTIFY_SOCKET: socket, PATH: path } = env
  if (socket === undefined || socket === '') return Promise.resolve(null)
  return new Promise(resolve => {
    const options = { env: { PATH: path, NOTIFY_SOCKET: socket }, timeout: 10_000 }
    execFile('systemd-notify', [...states], options, (error, _stdout, stderr) => {
      resolve(error === null ? null : `systemd-notify: ${stderr.trim() || error.message}`)
    })
  })
}
