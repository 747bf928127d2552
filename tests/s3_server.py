"""An object storage for tests: one server of moto for each test process, which the AWS variables of the process name, with a
new bucket whenever one is asked for."""

from __future__ import annotations

import functools
import logging
import os
import secrets
from typing import Any

import pytest

from assay.store.blobs import MARK


@functools.cache
def _server() -> str:
    package = pytest.importorskip("moto.server", reason="the package moto is not installed")
    pytest.importorskip("obstore", reason="the package obstore is not installed")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log every request
    server = package.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    os.environ.update(keys, AWS_ENDPOINT_URL=address)
    return address


def new_bucket(*, versioned: bool = False) -> str:
    """The address of an empty bucket."""
    name = f"t{secrets.token_hex(6)}"
    _client().create_bucket(Bucket=name)
    if versioned:
        _client().put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return f"s3://{name}/assay"


def content(address: str) -> bytes:
    """Everything that is in a bucket, but for the mark of its owner."""
    name = address.removeprefix("s3://").partition("/")[0]
    found = [key for key in keys(f"s3://{name}") if not key.endswith(MARK)]
    return b"".join(_client().get_object(Bucket=name, Key=key)["Body"].read() for key in found)


def keys(address: str) -> list[str]:
    """The names of all objects whose address begins like this."""
    name, _, prefix = address.removeprefix("s3://").partition("/")
    pages = _client().get_paginator("list_objects_v2").paginate(Bucket=name, Prefix=prefix)
    return [each["Key"] for page in pages for each in page.get("Contents", ())]


def put(address: str, data: bytes) -> None:
    """Put an object there that is not Assay's."""
    name, _, key = address.removeprefix("s3://").partition("/")
    _client().put_object(Bucket=name, Key=key, Body=data)


@functools.cache
def _client() -> Any:
    at = _server()
    import boto3

    return boto3.client("s3", endpoint_url=at, region_name="us-east-1")


def delete(address: str) -> None:
    name, _, key = address.removeprefix("s3://").partition("/")
    _client().delete_object(Bucket=name, Key=key)


def copy(address: str, to: str) -> None:
    name, _, key = address.removeprefix("s3://").partition("/")
    _, _, target = to.removeprefix("s3://").partition("/")
    _client().copy_object(Bucket=name, Key=target, CopySource={"Bucket": name, "Key": key})
