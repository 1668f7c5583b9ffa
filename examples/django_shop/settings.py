"""Settings of the shop. The keys are those of `cambist account create`."""

import os

SECRET_KEY = os.environ.get("SECRET_KEY", "only for development")
DEBUG = "SECRET_KEY" not in os.environ
ALLOWED_HOSTS = ["*"] if DEBUG else ["shop.example"]
USE_TZ = True
ROOT_URLCONF = "urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("SHOP_DB", "shop.sqlite3")}}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "cambist.django",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
CAMBIST = {
    "URL": os.environ.get("CAMBIST_URL", "http://127.0.0.1:8080"),
    "API_KEY": os.environ.get("API_KEY", "svc_test_…"),
    "API_SECRET": os.environ.get("API_SECRET", "…"),
    "WEBHOOK_SECRETS": os.environ.get("WEBHOOK_SECRETS", "…").split(","),
}
