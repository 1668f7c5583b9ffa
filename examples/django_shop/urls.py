"""Routes of the shop, and the webhook receiver at /cambist/hook."""

from django.contrib import admin
from django.urls import include, path
from shop.views import buy

urlpatterns = [
    path("admin/", admin.site.urls),
    path("cambist/", include("cambist.django.urls")),
    path("buy", buy, name="buy"),
]
