import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { JOB_NAME, type GatewayUnit } from './gateway-unit.js'
import { run } from './machine.js'

/** Where launchd puts what the gateway writes. */
export function jobLog (home: string | null): string {
  return `${home ?? ''}/var/log/svc.log`
}

/** A job of launchd. Pure. */
export function launchdPlist ({ node, program, home, user, path }: GatewayUnit, mark: string): string {
  const words = [node, program, 'serve', ...home === null ? [] : ['--home', home]]
  const text = (value: string): string => `<string>${value.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</string>`
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${mark} -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>${text(JOB_NAME)}
  <key>ProgramArguments</key>
  <array>${words.map(text).join('')}</array>
  <key>UserName</key>${text(user)}
  <key>EnvironmentVariables</key>
  <dict><key>PATH</key>${text(path)}</dict>
  <key>RunAtLoad</key><true/>
  <!-- one that fails, or asks for its restart after an update, is started again -->
  <key>KeepAlive</key>
  <dict><key>SuccessfulExit</key><false/></dict>
  <key>ThrottleInterval</key><integer>2</integer>
  <key>ExitTimeOut</key><integer>120</integer>
  <!-- engines that run as processes outlive a crash of the gateway, and the next one takes them over -->
  <key>AbandonProcessGroup</key><true/>
  <!-- otherwise it is throttled like background work -->
  <key>ProcessType</key><string>Interactive</string>
  <key>SoftResourceLimits</key>
  <dict><key>NumberOfFiles</key><integer>65536</integer></dict>
  <key>Umask</key><integer>${0o027}</integer>
  <key>StandardOutPath</key>${text(jobLog(home))}
  <key>StandardErrorPath</key>${text(jobLog(home))}
</dict>
</plist>
`
}

/** Throws a `CliFailure` for a user that this machine does not have: launchd makes none. */
export async function requireUser (user: string): Promise<void> {
  if ((await run('id', ['-u', user])).ok) return
  throw new CliFailure(`user ${user} does not exist on this machine`, { hints: ['Choose an existing one with --user.'] })
}

/** Has launchd start the job, also in the place of one that runs. Throws a `CliFailure` where it does not. */
export async function loadJob (cli: Cli, { user, home }: Pick<GatewayUnit, 'user' | 'home'>, file: string): Promise<void> {
  const log = jobLog(home)
  await mkdir(dirname(log), { recursive: true })
  await (await open(log, 'a', 0o640)).close()
  await run('chown', [user, log])
  await run('launchctl', ['bootout', `system/${JOB_NAME}`])
  const { ok, said } = await run('launchctl', ['bootstrap', 'system', file])
  if (!ok) throw new CliFailure(`launchd rejects ${file}: ${said}`)
  cli.out.line(`The gateway runs as a job of launchd and starts with the machine: sudo launchctl print system/${JOB_NAME}`)
  cli.out.line(`Its log is ${log}`)
}
