"""Firefox for Selenium without geckodriver, which Debian does not have: Firefox itself listens for the same commands, as
JSON over a socket (Marionette). A message is LENGTH:[0, NUMBER, COMMAND, PARAMETERS], its answer LENGTH:[1, NUMBER, ERROR,
RESULT]. https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.remote_connection import RemoteConnection

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
# Selenium's names of the commands that the tests need, and Marionette's.
COMMANDS = {
    "newSession": "WebDriver:NewSession", "quit": "WebDriver:DeleteSession", "get": "WebDriver:Navigate",
    "getCurrentUrl": "WebDriver:GetCurrentURL", "setTimeouts": "WebDriver:SetTimeouts",
    "setWindowRect": "WebDriver:SetWindowRect", "w3cExecuteScript": "WebDriver:ExecuteScript",
    "w3cExecuteScriptAsync": "WebDriver:ExecuteAsyncScript", "findElement": "WebDriver:FindElement",
    "findElements": "WebDriver:FindElements", "findChildElement": "WebDriver:FindElement",
    "findChildElements": "WebDriver:FindElements", "w3cGetActiveElement": "WebDriver:GetActiveElement",
    "sendKeysToElement": "WebDriver:ElementSendKeys", "clickElement": "WebDriver:ElementClick",
    "getElementText": "WebDriver:GetElementText", "getElementProperty": "WebDriver:GetElementProperty",
    "elementScreenshot": "WebDriver:TakeScreenshot"}


class Marionette(RemoteConnection):
    """What Selenium sends its commands to: a Firefox of its own, with a new profile."""

    def __init__(self):
        super().__init__(client_config=ClientConfig(remote_server_addr="http://127.0.0.1"))  # nothing is sent there
        # pylint: disable=consider-using-with  # until the browser ends
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with open(os.path.join(self.profile.name, "user.js"), "w", encoding="utf-8") as file:
            file.write(f'user_pref("marionette.port", {self.port});\nuser_pref("app.update.enabled", false);\n')
        self.process = subprocess.Popen(
            [FIREFOX, "--headless", "--no-remote", "--marionette", "--profile", self.profile.name], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.socket, self.number = self.connected(), 0
        self.stream = self.socket.makefile("rwb")
        self.read()  # it says who it is

    def connected(self):
        for _ in range(600):
            try:
                return socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("Firefox does not answer")

    def read(self):
        length = b""
        while not length.endswith(b":"):
            length += self.stream.read(1)
        return json.loads(self.stream.read(int(length[:-1])))

    def execute(self, command, params):
        params = {name: value for name, value in (params or {}).items() if name != "sessionId"}
        if command == "newSession":
            params = {}
        if command.startswith("findChild"):
            params["element"] = params.pop("id")
        if command == "elementScreenshot":
            params["full"] = False
        self.number += 1
        text = json.dumps([0, self.number, COMMANDS[command], params]).encode()
        self.stream.write(b"%d:%s" % (len(text), text))
        self.stream.flush()
        _, _, error, result = self.read()
        if error:
            return {"status": 500, "value": json.dumps({"value": error})}
        return {"status": 0, "value": result.get("value", result) if isinstance(result, dict) else result}

    def close(self):
        self.stream.close()
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()


class Firefox(webdriver.Remote):
    """A Firefox without a window."""

    def __init__(self):
        super().__init__(command_executor=Marionette(), options=webdriver.FirefoxOptions())

    def quit(self):
        try:
            super().quit()
        finally:
            self.command_executor.close()
