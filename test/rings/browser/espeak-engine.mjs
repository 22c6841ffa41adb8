/* usage: espeak-engine.mjs PORT HOST
 *
 * Speech of espeak-ng as MP3, which pages play as it is, or as WAV. Its last line of output is what it was asked.
 */
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { buffer, json } from 'node:stream/consumers'

const [port, host] = process.argv.slice(2)

async function spoken ({ input, response_format: format }) {
  const voice = spawn('espeak-ng', ['--stdin', '--stdout', '-b', '1'], { stdio: ['pipe', 'pipe', 'inherit'] })
  if (format === 'wav') {
    voice.stdin.end(input)
    return await buffer(voice.stdout)
  }
  const encoder = spawn('lame', ['--quiet', '-', '-'], { stdio: ['pipe', 'pipe', 'inherit'] })
  voice.stdin.end(input)
  voice.stdout.pipe(encoder.stdin)
  return await buffer(encoder.stdout)
}

createServer((request, response) => {
  if (request.method !== 'POST') return void response.end('{"status":"ok"}')
  json(request).then(async order => {
    console.log(JSON.stringify(order))
    response.writeHead(200, { 'content-type': order.response_format === 'wav' ? 'audio/wav' : 'audio/mpeg' }).end(await spoken(order))
  }).catch(error => { response.writeHead(500).end(String(error)) })
}).listen(Number(port), host)
