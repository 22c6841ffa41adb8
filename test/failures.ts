/** A failure that users of local gateways have met, and what shows that this one does not have it. */
export interface Failure {
  readonly failure: string
  /** Files below test/, each with the titles of the tests that show it. */
  readonly shownBy: Readonly<Record<string, readonly string[]>>
  /** What no test shows, and why not. */
  readonly why?: string
}

/**
 * By ids that stay: C is what users of gateways report, F is where that touches a promise of this one, T is what users of tool
 * servers report.
 */
export const failures: Readonly<Record<string, Failure>> = {
  C1: {
    failure: 'The client has left, and the engine goes on for nobody.',
    shownBy: {
      'wire/forward.test.ts': ['a client that leaves cancels the engine\'s work at once, in every phase', 'a client that leaves while the slot loads does not stop the load for others'],
      'wire/queue.test.ts': ['who leaves or is cancelled while he waits never reaches the engine'],
      'wire/upstream/upstreams.test.ts': ['a client that leaves frees the upstream, in every phase'],
      'kernel/dispatch/streams.test.ts': ['the last one out ends the wait, or the call'],
      'e2e/llama-container.test.ts': ['a client that leaves mid-stream frees the engine']
    }
  },
  C2: {
    failure: 'Nobody can end a request that runs.',
    shownBy: {
      'wire/requests.test.ts': ['cancelling ends a request in every phase, at the client and at the engine'],
      'cli/api.test.ts': ['ps shows what runs and what waits, and cancel ends one']
    }
  },
  C3: {
    failure: 'Nothing is heard while a model loads, until somebody on the way loses patience.',
    shownBy: {
      'wire/forward.test.ts': ['cold streams: quick failures keep their status, slow loads open the stream and ping', 'a stream arrives byte for byte, however the engine cuts it'],
      'wire/format/messages.test.ts': ['while an engine is silent the client gets pings of the format'],
      'kernel/dispatch/streams.test.ts': ['the hold: an answer in time, a failure, a client that leaves, and 0 end it']
    }
  },
  C4: {
    failure: 'A limit of five minutes, in some library, ends what a slow model had begun.',
    shownBy: { 'wire/connection/silence.test.ts': ['an engine may think for an hour before its answer and inside it; its slot stays', 'the hour is one: a client with limits gives up, and the server has none'] }
  },
  C5: {
    failure: 'Events are collected on the way and come in bursts.',
    shownBy: { 'wire/connection/silence.test.ts': ['every event is with the client before the engine sends the next one', 'the same when several clients share a cold stream'] }
  },
  C6: {
    failure: 'The time for a start is too short, counts the download, and what failed once stays failed.',
    shownBy: {
      'kernel/async/async.test.ts': ['work that overspends its time is aborted, and the budget is the reason whatever the work says'],
      'plugins/api/settings/settings-live.test.ts': ['slots.health_timeout_s'],
      'kernel/slots/fleet.test.ts': ['a launch that waits for its model ends with the budget of the moment', 'an error can be left by the next request, by a verb, and by an unload']
    }
  },
  C7: {
    failure: 'An unload meets a new request, and both hang.',
    shownBy: {
      'kernel/slots/interleavings.test.ts': ['${SCRIPTS} random scripts of requests, verbs, crashes, hangs and restarts'],
      'wire/lifecycle.test.ts': ['an unload that waits for a stream ends it when the time is over'],
      'wire/queue.test.ts': ['an unload ends the line, a restart keeps it']
    }
  },
  C8: {
    failure: 'The router stands still, lets requests starve, or evicts what is still loading.',
    shownBy: {
      'kernel/slots/interleavings.test.ts': ['${SCRIPTS} random scripts of requests, verbs, crashes, hangs and restarts', 'every transition that the scripts take is legal'],
      'kernel/slots/pressure.test.ts': ['short memory takes the least recently used slot that nothing leans on'],
      'wire/queue.test.ts': ['no more requests at the engine than it has workers; the others stand in line, seen and in order'],
      'wire/requests.test.ts': ['a request is listed in every phase, with what it waits for, and then no more']
    }
  },
  C9: {
    failure: 'Engines outlive their gateway and nobody knows them any more.',
    shownBy: {
      'kernel/runtime/process/process-survival.test.ts': ['killed at any moment: every engine is found again, and nothing else runs', 'children of an engine end with it'],
      'e2e/llama-container.test.ts': ['a gateway that is killed mid-stream leaves its engines to the next one', 'a graceful stop keeps the containers, a slot that was deleted meanwhile is cleaned up'],
      'kernel/runtime/container-form.test.ts': ['what a container is given, and what not']
    }
  },
  C10: {
    failure: 'The next start meets the container of the last one, which is not gone yet.',
    shownBy: {
      'kernel/slots/fleet.test.ts': ['delete and create of the same name: the new slot waits for the engine of the old, however often', 'engines of an earlier run: what may not stay is removed, and nothing starts beside what resists'],
      'kernel/runtime/docker/docker-faults.test.ts': ['remove: a removal by somebody else is waited for, one that fails is tried again'],
      '../kernel/testing/runtime-life-checks.ts': ['remove is thorough, patient and idempotent']
    }
  },
  C11: {
    failure: 'Two programs on one port: the wrong one is asked, or taken for the engine.',
    shownBy: {
      '../kernel/testing/runtime-find-checks.ts': ['a port that is taken is named'],
      'kernel/runtime/container-form.test.ts': ['host network: reached on this host, and a taken port is noticed before the start'],
      'kernel/slots/fleet.test.ts': ['a port that turns out to be taken is given up when the gateway chose it, and the launch takes another'],
      'kernel/slots/plan/planning.test.ts': ['ports: what is preferred, then what nobody had, then what idle slots had last']
    }
  },
  C12: {
    failure: 'A model is started while the memory of the last one is not free yet, or takes what is not there.',
    shownBy: {
      'kernel/slots/memory-release.test.ts': ['the wait ends when the driver has given the memory back, at the latest after five seconds'],
      'kernel/slots/pressure.test.ts': ['a memory pool is short when it is below its floor', 'slots go one at a time, the least recently used first, until memory has recovered'],
      'wire/broken-model.test.ts': ['a model that is too large for this machine is told as such']
    },
    why: 'A start that fails for want of memory is told, and tried again by the next request; nothing is unloaded for it before the sweep of the next half minute.'
  },
  C13: {
    failure: 'Every request starts a broken model anew.',
    shownBy: {
      'wire/broken-model.test.ts': ['a storm of requests on a model that does not start: few starts, and everybody hears why and when'],
      'kernel/slots/scheduler.test.ts': ['failures in a row back off from 5 s to 5 min, the first costs nothing']
    }
  },
  C14: {
    failure: 'A model that thinks for long is taken for idle or stuck, and ended.',
    shownBy: {
      'wire/connection/silence.test.ts': ['an engine may think for an hour before its answer and inside it; its slot stays'],
      'kernel/slots/health.test.ts': ['a running engine is lost after two failures in a row, after silence only while nothing runs']
    },
    why: 'Nothing ends a generation that really is stuck but its client, `svc cancel`, or the limits of [dispatcher] and [slots], which are off unless they are set.'
  },
  C15: {
    failure: 'Requests are refused at random or wait for ever; who only looks is counted and keeps models awake.',
    shownBy: {
      'wire/queue.test.ts': ['a full line turns newcomers away, with a time to come back', 'no more requests at the engine than it has workers; the others stand in line, seen and in order'],
      'wire/awake.test.ts': ['looking at the gateway keeps no model awake, wakes none, and image mode ends all the same']
    },
    why: 'Two classes and no more: streams stand before chores, and nobody waits for ever.'
  },
  C16: {
    failure: 'A reload of the configuration kills models that run, or starts them twice.',
    shownBy: {
      'wire/lifecycle.test.ts': ['a reload of the configuration leaves a stream alone; a slot that is edited runs on as it is until it is restarted'],
      'e2e/broken-config.test.ts': ['a slot file that breaks on reload: the last good one stays in force, and running engines run on'],
      'kernel/host/reload.test.ts': ['plugins come and go; what runs goes on']
    }
  },
  C17: {
    failure: 'A model that is not loaded is in no list, so that nobody ever asks for it.',
    shownBy: {
      'wire/model-addressing.test.ts': ['a cold gateway with one enabled llm slot never lists nothing', 'the list of models follows slots, upstreams and virtual names'],
      'kernel/dispatch/resolve.test.ts': ['a cold gateway lists the virtual names of every enabled llm slot']
    }
  },
  C18: {
    failure: 'The context is cut to some default without a word.',
    shownBy: {
      'kernel/slots/plan/planning.test.ts': ['context size: the slot, else the model up to 32768, else 8192; never silently 4096'],
      'cli/api.test.ts': ['create sends what was typed, a context size in any case, and leaves the device to the gateway']
    }
  },
  C19: {
    failure: 'No keys for clients, no limits for each.',
    shownBy: { 'plugins/api/settings/settings.test.ts': ['settings are read without secrets, and a change keeps comments'] },
    why: 'There is no authentication. The gateway listens on this host alone, guards its Host and Origin, and warns whoever opens it wider.'
  },
  C20: {
    failure: 'No figures for each model, and no reason for a request that waits.',
    shownBy: {
      'plugins/api/stats.test.ts': ['everything at once, and for Prometheus'],
      'wire/requests.test.ts': ['a request is listed in every phase, with what it waits for, and then no more']
    }
  },
  C21: {
    failure: 'Clients that speak Responses or Messages find nothing.',
    shownBy: {
      'wire/format/responses.test.ts': ['the openai client gets responses, whole and streamed'],
      'wire/format/messages.test.ts': ['the Anthropic client works unmodified']
    }
  },
  C22: {
    failure: 'The image engine keeps the GPU because somebody looks at it, or takes it in the middle of an answer.',
    shownBy: {
      'wire/awake.test.ts': ['looking at the gateway keeps no model awake, wakes none, and image mode ends all the same'],
      'kernel/slots/gpu/gpu-arbiter.test.ts': ['an image request takes the GPU, and quiet gives it back', 'requests that run may end, up to the deadline'],
      'plugins/api/comfyui.test.ts': ['the GPU goes to the image engine and back']
    }
  },
  C23: {
    failure: 'A wrong field in the configuration ends the program, or is passed over.',
    shownBy: {
      'e2e/broken-config.test.ts': ['a bad slot file at start: it is told with file, path and allowed values, and the other slots serve'],
      'kernel/config/slot-file.test.ts': ['everything wrong with a file at once, in the words of the file'],
      'cli/home/config.test.ts': ['validate tells all that is wrong in all files, one line for each']
    }
  },
  C24: {
    failure: 'A model that should stay is unloaded; what it had read is lost.',
    shownBy: {
      'wire/pressure.test.ts': ['while memory is short, idle slots make room and come back when they are asked for'],
      'kernel/slots/plan/planning.test.ts': ['a slot\'s idle time is its own, else the global one, unless others depend on it']
    },
    why: 'That a pinned slot stays is shown. What an engine had read (its KV cache) is not kept over an unload: there is no place for it.'
  },
  C25: {
    failure: 'Two engines fight for the NPU, or one runs on the CPU and does not say so.',
    shownBy: {
      'kernel/slots/slot-rules.test.ts': ['rules between slots and inside one'],
      'plugins/api/machine/npu.test.ts': ['switches of the trio, and one engine on the NPU'],
      'plugins/providers/npu-rt/trio.test.ts': ['one request at a time, whatever the surface'],
      'kernel/runtime/gpu-visibility.test.ts': ['a device that is not there is an error that says what is']
    },
    why: 'A device that is absent refuses the start. What an engine makes of one that is there is not asked: the engines say it in no form that could be relied on.'
  },
  C26: {
    failure: 'A container does not see the GPU, and its engine silently takes the CPU.',
    shownBy: {
      'kernel/runtime/gpu-visibility.test.ts': ['what a device needs, in a container and as a process', 'a device that is not there is an error that says what is'],
      'kernel/runtime/docker/docker-create.test.ts': ['rootless Podman keeps its groups by annotation, and SELinux labels are switched off for mounts alone', 'an engine that would leave the GPU out without a word'],
      'cli/home/doctor.test.ts': ['doctor judges each fact it gathered, and says what to do about it']
    },
    why: 'All before the start is shown. Whether an engine then offloads its layers needs a machine with a GPU.'
  },
  C27: {
    failure: 'An error inside a stream looks like its end, or another model goes on in the middle of an answer.',
    shownBy: {
      'wire/forward.test.ts': ['a stream that breaks off ends with one error event and no [DONE]'],
      'wire/upstream/upstream-fallback.test.ts': ['never after the first byte, and never for a refusal of the request'],
      'e2e/llama-container.test.ts': ['a container that is killed mid-stream ends the stream with one error event']
    }
  },
  C28: {
    failure: 'The gateway grows with every request, and is slow to start.',
    shownBy: {
      'wire/memory.test.ts': ['requests leave nothing behind, whether they are answered, refused or left'],
      'chaos/storm.test.ts': ['a storm with seed ${seed}']
    },
    why: 'Times of a start and of a request are measured by `npm run bench`, not by a test: they depend on the machine.'
  },
  C29: {
    failure: 'Gigabytes are fetched without a word, and from the beginning after every break.',
    shownBy: {
      'plugins/services/pull/full-disk.test.ts': ['a disk that is too small, gets full, and has room again'],
      'plugins/services/pull/faults.test.ts': ['connections that break, stall, are refused for a while: no byte lost or sent twice', 'damage of what an earlier run left is found, and costs one more download'],
      'e2e/image-pull.test.ts': ['the verb pulls ahead, tells its progress and joins a pull that runs', 'a pinned image is taken by its digest, another one is refused']
    },
    why: 'The size of an image is told once its pull runs, not before: registries say it only then.'
  },
  C30: {
    failure: 'Large uploads are kept in memory.',
    shownBy: { 'plugins/v1/audio/large-upload.test.ts': ['large uploads leave the memory of the gateway flat, and arrive as they are'] }
  },
  C31: {
    failure: 'A poisoned release of a dependency, or of a plugin, is installed unseen.',
    shownBy: {
      'package.test.ts': ['whatever is installed is the very thing that was locked', 'what ships with the gateway is little, and no more of it runs while it is installed than is known'],
      'cli/plugins/plugin.test.ts': ['a folder is installed as a copy, allowed by its name, and taken away again without a trace']
    },
    why: 'Plugins are known by their hash and have to be allowed by name; signatures are not checked, as nobody has keys for them.'
  },
  C32: {
    failure: 'The same command is slower under the gateway, and nobody sees what it really ran.',
    shownBy: {
      'plugins/api/slots/slots.test.ts': ['the command line is shown with the origin of each flag, and managed flags are refused'],
      'kernel/slots/plan/planning.test.ts': ['env: the slot\'s own wins over the device\'s, and that over the provider\'s', 'merges provider, profile and extra_args; MTP lies below the profile\'s own flags']
    },
    why: 'No route shows the whole environment: the answer with the command line has no place for it.'
  },
  C33: {
    failure: 'Agents cannot manage the gateway, and web pages can.',
    shownBy: {
      'kernel/http/http.test.ts': ['the Origin guard refuses pages of origins that are not allowed'],
      'plugins/mcp/admin.test.ts': ['a failing slot is found, swapped and checked, and every step stands in the activity under the agent\'s name']
    }
  },
  C34: {
    failure: 'How long a model stays cannot be said for each, let alone for ever.',
    shownBy: { 'kernel/slots/plan/planning.test.ts': ['a slot\'s idle time is its own, else the global one, unless others depend on it'] },
    why: 'Each slot has it, 0 for ever. A field of the request (keep_alive) would let any client decide about the memory of all; it is not read.'
  },
  C35: {
    failure: 'A plugin that only watches throws or hangs, and requests go down with it.',
    shownBy: {
      'kernel/host/zoo.test.ts': ['thirty misbehaving plugins in one gateway: it serves, and says of each what is wrong'],
      'kernel/events/events.test.ts': ['a reader that falls behind']
    }
  },
  C36: {
    failure: 'An upload, a stream or a request that is cut off at the wrong moment ends the process.',
    shownBy: {
      'chaos/storm.test.ts': ['a storm with seed ${seed}'],
      'wire/forward.test.ts': ['a client that leaves cancels the engine\'s work at once, in every phase'],
      'wire/connection/sockets.test.ts': ['requests in line on one connection are answered in order, and never begun once the client has left'],
      'plugins/v1/audio/transcription.test.ts': ['a client that leaves frees everything at once, in every phase', 'engines that answer early, die, or refuse'],
      'kernel/http/sse-reply.test.ts': ['the client leaves: the source\'s finally runs, nothing is written any more']
    }
  },
  F1: {
    failure: 'Clients that look at the list first find it empty on a cold gateway.',
    shownBy: { 'wire/model-addressing.test.ts': ['a cold gateway with one enabled llm slot never lists nothing'] }
  },
  F2: {
    failure: 'The context size that the command line assumes is one that nobody has chosen.',
    shownBy: { 'cli/api.test.ts': ['create sends what was typed, a context size in any case, and leaves the device to the gateway'] }
  },
  F3: {
    failure: 'Signs of life come between the bytes of an answer.',
    shownBy: { 'wire/forward.test.ts': ['a slow load opens the stream with pings', 'a stream arrives byte for byte, however the engine cuts it'] }
  },
  F4: {
    failure: 'Requests share a call that are not equal, one that leaves takes it from the others, a slow one stalls them.',
    shownBy: {
      'wire/forward.test.ts': ['identical cold requests share one call; different ones share one load', 'a slow reader of a shared stream is cut off and does not stall the others'],
      'kernel/dispatch/streams.test.ts': ['another body, path or slot takes another', 'the last one out ends the wait, or the call']
    }
  },
  F5: {
    failure: 'Engines are open to the network, past the gateway, and nobody said so.',
    shownBy: { 'plugins/api/settings/settings.test.ts': ['settings are read without secrets, and a change keeps comments'] }
  },
  F6: {
    failure: 'Anybody on the network can use the gateway, and nobody said so.',
    shownBy: {
      'wire/connection/exposure.test.ts': ['a gateway that listens beyond this machine says that it asks nobody who they are'],
      'plugins/api/settings/settings.test.ts': ['settings are read without secrets, and a change keeps comments']
    },
    why: 'There is no place for authentication to hook in but a proxy in front.'
  },
  F7: {
    failure: 'Only main memory is watched while the GPU runs out of its own.',
    shownBy: {
      'kernel/slots/pressure.test.ts': ['a memory pool is short when it is below its floor', 'short memory takes the least recently used slot that nothing leans on'],
      'kernel/hardware/memory-pools.test.ts': ['memory pools are read on recorded machines']
    }
  },
  F8: {
    failure: 'All ports are taken, and creating a slot ends in a crash.',
    shownBy: {
      'kernel/slots/plan/planning.test.ts': ['ports: what is preferred, then what nobody had, then what idle slots had last'],
      'plugins/api/backends.test.ts': ['one anchor has the NPU; no port is left for another']
    }
  },
  F9: {
    failure: 'A form names its model behind the file, and the file is kept in memory until then.',
    shownBy: {
      'plugins/v1/audio/transcription.test.ts': ['the form arrives byte for byte but for the model, wherever that stands'],
      'plugins/v1/audio/large-upload.test.ts': ['large uploads leave the memory of the gateway flat, and arrive as they are']
    }
  },
  F10: {
    failure: 'A model that is unknown, not loaded or broken gives a status that clients cannot tell apart.',
    shownBy: {
      'wire/model-addressing.test.ts': ['each way to name a model leads to its slot or upstream, or is refused with the reason'],
      'kernel/contract/error-codes.test.ts': ['every code that is thrown is in a table, with the status of the table']
    }
  },
  F11: {
    failure: 'An SDK asks again by itself, and a broken model is loaded several times for one click.',
    shownBy: { 'wire/broken-model.test.ts': ['a click of an unmodified client starts a broken model once, not once for each of its tries'] }
  },
  F12: {
    failure: 'An SDK gives up on a slow load and its next try starts another one.',
    shownBy: { 'wire/broken-model.test.ts': ['a client that loses patience while a model loads, and asks again, joins the load'] }
  },
  T1: {
    failure: 'Sessions that no client ends fill the memory.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a session is a name and no more: any id is taken, an ended one is gone, and thousands cost nothing'] }
  },
  T2: {
    failure: 'A session that seems idle is closed in the middle of a call.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a session is a name and no more: any id is taken, an ended one is gone, and thousands cost nothing'] },
    why: 'No session is ever closed by the gateway: there is nothing to close.'
  },
  T3: {
    failure: 'A session expires while an agent thinks.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a session is a name and no more: any id is taken, an ended one is gone, and thousands cost nothing'] }
  },
  T4: {
    failure: 'After a restart clients get 404 and never begin anew.',
    shownBy: { 'plugins/mcp/clients.test.ts': ['${name}: a restart of the gateway in between goes unnoticed'] }
  },
  T5: {
    failure: 'A dead session is answered 400, which no client recovers from.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a session is a name and no more: any id is taken, an ended one is gone, and thousands cost nothing'] }
  },
  T6: {
    failure: 'A stale session of a server behind the gateway makes calls that do nothing.',
    shownBy: { 'plugins/services/tool-servers/tool-servers.test.ts': ['a server of an older revision with a url may answer in any way that the transport has'] }
  },
  T7: {
    failure: 'Sessions that change kill bridges.',
    shownBy: { 'plugins/mcp/clients.test.ts': ['${name}: a restart of the gateway in between goes unnoticed'] }
  },
  T8: {
    failure: 'A client that asks for a stream hangs or loops over the answer.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a client that looks for sign-in or for a stream that is not there hears at once that there is none'] }
  },
  T9: {
    failure: 'A GET that is answered with text is asked again each second.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a client that looks for sign-in or for a stream that is not there hears at once that there is none'] }
  },
  T10: {
    failure: 'A silent stream is cut on the way, and the answer is lost.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a call that says nothing for a while becomes a stream that is kept alive'] }
  },
  T11: {
    failure: 'Open streams keep the gateway from stopping.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['clients hear that tools changed, on a stream that ends with the gateway and one for each session'] }
  },
  T12: {
    failure: 'Behind another host name nothing works, and no setting helps.',
    shownBy: {
      'plugins/mcp/transport.test.ts': ['names of this machine only, and those that are allowed'],
      'plugins/api/settings/settings-live.test.ts': ['mcp.allowed_hosts']
    }
  },
  T13: {
    failure: 'Pages cannot call the server, or not read their session.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['names of this machine only, and those that are allowed'] }
  },
  T14: {
    failure: 'Clients that accept one content type are refused.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['what is no message of the protocol is refused in its words'] }
  },
  T15: {
    failure: 'Names of tools are too long, or have characters that models do not take.',
    shownBy: {
      'kernel/tools/tools.test.ts': ['a tool whose name or schema does not fit is left out alone, and named'],
      'plugins/mcp/admin.test.ts': ['every tool of the gateway is listed with its class, words for a model and a schema that every client takes']
    }
  },
  T16: {
    failure: 'A choice at the root of a schema drops the tool, or all of them.',
    shownBy: { 'kernel/tools/tools.test.ts': ['a tool whose name or schema does not fit is left out alone, and named'] }
  },
  T17: {
    failure: 'One schema that a provider of models does not take fails every request.',
    shownBy: {
      'kernel/tools/tools.test.ts': ['a tool whose name or schema does not fit is left out alone, and named'],
      'plugins/mcp/admin.test.ts': ['every tool of the gateway is listed with its class, words for a model and a schema that every client takes']
    }
  },
  T18: {
    failure: 'What clients show of an error is their complaint about its shape.',
    shownBy: { 'plugins/mcp/clients.test.ts': ['${name}: lists, calls, hears of errors, approvals and progress, cancels'] }
  },
  T19: {
    failure: 'An answer is too long for the client, and refused as a whole.',
    shownBy: {
      'kernel/tools/tools.test.ts': ['a long answer is an object of bounded length that says how to ask for less'],
      'plugins/mcp/admin.test.ts': ['tools that only look answer short rows']
    }
  },
  T20: {
    failure: 'Clients give up after a minute on what takes longer.',
    shownBy: {
      'plugins/mcp/transport.test.ts': ['a client that wants to hear how a call goes on hears each ten seconds that it does'],
      'plugins/mcp/admin.test.ts': ['progress is told while a slot loads'],
      'plugins/mcp/clients.test.ts': ['${name}: lists, calls, hears of errors, approvals and progress, cancels']
    }
  },
  T21: {
    failure: 'The list of tools fills the window of the model.',
    shownBy: {
      'plugins/mcp/admin.test.ts': ['every tool of the gateway is listed with its class, words for a model and a schema that every client takes'],
      'kernel/tools/tools.test.ts': ['an agent with a file sees and calls what the file allows']
    }
  },
  T22: {
    failure: 'Clients do not hear that tools changed, and call what is gone.',
    shownBy: {
      'plugins/mcp/clients.test.ts': ['${name}: hears that tools came and went'],
      'plugins/mcp/admin.test.ts': ['the tool that a package\'s route is comes with the package, and clients are told'],
      'plugins/mcp/transport.test.ts': ['clients hear that tools changed, on a stream that ends with the gateway and one for each session']
    }
  },
  T23: {
    failure: 'A client looks for a way to sign in and is shown a page.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['a client that looks for sign-in or for a stream that is not there hears at once that there is none'] }
  },
  T24: {
    failure: 'Answers reach the wrong client.',
    shownBy: { 'plugins/mcp/transport.test.ts': ['many clients at once, all with the same request id: each gets its own answer'] }
  }
}
