/* Search runs in a worker, and browsers start no worker from a file on disk. Where the site is opened from disk, this
   class stands in for it: the script runs in a hidden frame, and both sides hand messages to each other directly. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.onmessage = this.onerror = this.onmessageerror = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.waiting = []
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => setTimeout(() => this.emit("message", data))
      inside.importScripts = () => { throw new Error("scripts cannot be loaded from disk inside of a worker") }
      inside.__index = window.__index  // what the search looks through
      const script = inside.document.createElement("script")
      script.src = new URL(address, location.href).href
      script.onload = () => {
        this.ready = true
        for (const data of this.waiting.splice(0)) this.hand(data)
      }
      script.onerror = () => this.emit("error")
      inside.document.head.append(script)
    }
    emit(kind, data) {
      const event = kind === "message" ? new MessageEvent(kind, { data }) : new Event(kind)
      if (typeof this["on" + kind] === "function") this["on" + kind](event)
      this.dispatchEvent(event)
    }
    hand(data) {
      const inside = this.frame.contentWindow
      if (inside) setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
    }
    postMessage(data) {
      if (this.ready) this.hand(data)
      else this.waiting.push(data)
    }
    terminate() { this.frame.remove() }
  }
}
